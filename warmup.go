package weir

import "github.com/weirhq/weir/algo"

// decide is algo.Decide with the algorithms that are not integer arithmetic.
func decide(p *algo.Params, s algo.State, now, cost, slack int64) (algo.State, algo.Verdict) {
	return algo.Decide(p, s, now, cost, slack)
}

// adjust is algo.Adjust likewise.
func adjust(p *algo.Params, s algo.State, now, at, delta int64) algo.State {
	return algo.Adjust(p, s, now, at, delta)
}
