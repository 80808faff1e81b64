package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirhq/weir"
)

// Validate returns everything that keeps the document from working in any door.
// What depends on the door, such as which keys it has, [Compile] says.
func (d *Document) Validate() Problems {
	c := checker{names: make(map[string]*Rule)}
	for i := range d.Rules {
		if len(c.problems) >= maxProblems {
			break
		}
		c.rule(item("rules", i), &d.Rules[i])
	}
	return c.problems
}

// Unsupported returns a problem for every limit that a store cannot run, by what its
// Supports says (see [weir.Supporter]). The document must be valid.
func (d *Document) Unsupported(supports func(*weir.Policy) error) Problems {
	var problems Problems
	for i := range d.Rules {
		r := &d.Rules[i]
		for n, l := range r.limits() {
			p, err := weir.NewPolicy(r.Name, l.Weir())
			if err == nil {
				err = supports(p)
			}
			if err == nil {
				continue
			}
			keys := []any{"limit"}
			if r.Limit == nil {
				keys = []any{"limits", n}
			}
			problems = append(problems, r.problem(item("rules", i), err.Error(), keys...))
		}
	}
	return problems.sort()
}

// checker looks at one rule after the other.
type checker struct {
	problems Problems
	names    map[string]*Rule

	r    *Rule
	path string
}

// fail reports a problem of the current rule, at keys below it.
func (c *checker) fail(err error, keys ...any) {
	c.problems = append(c.problems, c.r.problem(c.path, err.Error(), keys...))
}

// problem makes a problem of a rule that path leads to, at keys below it.
func (r *Rule) problem(path, msg string, keys ...any) Problem {
	for _, k := range keys {
		switch k := k.(type) {
		case string:
			path = join(path, k)
		case int:
			path = item(path, k)
		}
	}
	return r.find(keys...).Problem(path, "%s", msg)
}

// rule checks a rule. What Decode has complained about is left alone.
func (c *checker) rule(path string, r *Rule) {
	c.r, c.path = r, path
	if r.node != nil && r.node.Kind != Map {
		return
	}
	c.name()
	if !r.bad["limit"] && !r.bad["limits"] {
		c.limits()
	}
	matcher, flaws := r.matcher()
	if !r.bad["match"] {
		for _, f := range flaws {
			c.fail(f.err, f.keys...)
		}
		c.lists()
	}
	if !r.bad["key"] {
		c.key(&matcher)
	}
	if !r.bad["unit"] {
		if err := checkUnit(r.Unit); err != nil {
			c.fail(err, "unit")
		}
	}
	if r.Rollout < 0 || r.Rollout > 9999 {
		c.fail(fmt.Errorf("%d is not within 0 and 9999 parts of 10,000", r.Rollout), "rollout")
	}
	if r.Status != 0 && (r.Status < 400 || r.Status > 599) && !r.bad["status"] {
		c.fail(fmt.Errorf("%d is not within 400 and 599", r.Status), "status")
	}
	if r.ContentType != "" {
		if r.Body == "" && !r.bad["body"] {
			c.fail(errors.New("there is no body that could have this type"), "content_type")
		}
		if strings.IndexFunc(r.ContentType, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 || !strings.Contains(r.ContentType, "/") {
			c.fail(fmt.Errorf("%s is not a media type such as application/json", quote(r.ContentType)), "content_type")
		}
	}
}

func (c *checker) name() {
	r := c.r
	if r.bad["name"] {
		return
	}
	// The rules for names are those of package weir; the limit is only there to ask.
	if _, err := weir.NewPolicy(r.Name, weir.PerSecond(1)); err != nil {
		c.fail(reason(err), "name")
		return
	}
	if before := c.names[r.Name]; before != nil {
		where := ""
		if n := before.find("name"); n != nil {
			where = fmt.Sprintf(" at line %d", n.Line)
		}
		c.fail(fmt.Errorf("%s is already the name of a rule%s; names are unique, since counters are kept by them", quote(r.Name), where), "name")
		return
	}
	c.names[r.Name] = r
}

func (c *checker) limits() {
	r := c.r
	switch {
	case r.Limit == nil && len(r.Limits) == 0 && r.node.Get("limits") != nil:
		c.fail(fmt.Errorf("the list is empty; write limit: %s for an exemption", unlimited), "limits")
	case r.Limit == nil && len(r.Limits) == 0:
		c.fail(fmt.Errorf("lacks limit: how much each partition may take, such as 5/m; %s for an exemption", unlimited))
	case r.Limit != nil && len(r.Limits) > 0:
		c.fail(errors.New("limit and limits are both given; put them all into limits"), "limits")
	}
	if r.Limit != nil {
		c.limit(*r.Limit, 0, "limit")
	}
	for i, l := range r.Limits {
		if l.Unlimited {
			c.fail(fmt.Errorf("%s means nothing beside other limits; write limit: %s", unlimited, unlimited), "limits", i)
			continue
		}
		c.limit(l, i, "limits", i)
	}
}

// limit asks package weir whether a limit is one.
func (c *checker) limit(l Limit, i int, keys ...any) {
	if l.Unlimited {
		return
	}
	if _, err := weir.NewPolicy("x", l.Weir()); err != nil {
		err = reason(err)
		field, _, _ := strings.Cut(err.Error(), " ")
		for _, f := range encodeStruct(limitFields(l)) {
			if f.Key.Value == field {
				keys = append(keys, field)
			}
		}
		c.fail(err, keys...)
		return
	}
	if most := l.Weir().Capacity(); most > 0 && c.r.cost() > most && !c.r.bad["cost"] {
		c.fail(fmt.Errorf("cost %d is above the %d that %s allows at once, so that every request would be refused; to refuse all, write a quota of 0", c.r.cost(), most, l), "cost")
	}
}

// lists reports lists of a match that were written and hold nothing, which looks
// like "none" and would mean "all".
func (c *checker) lists() {
	n := c.r.node.Get("match")
	if n == nil || n.Kind != Map {
		return
	}
	for _, e := range n.Entries {
		if e.Value.Kind == List && len(e.Value.Items) == 0 {
			c.fail(errors.New("the list is empty; leave it out to match all"), "match", e.Key.Value)
		}
	}
	if len(n.Entries) == 0 {
		c.fail(errors.New("the map is empty; leave match out to match all requests"), "match")
	}
}

func (c *checker) key(m *matcher) {
	r := c.r
	if len(r.Key) == 0 {
		switch {
		case r.node.Get("key") != nil:
			c.fail(errors.New("the list is empty; write global for one partition for all"), "key")
		case !r.unlimited() && !r.bad["limit"]:
			c.fail(errors.New("lacks key: what splits requests into partitions, such as ip; write global if all requests share one"))
		}
		return
	}
	for i, text := range r.Key {
		keys := r.keyAt(i)
		p, err := parseKeyPart(text)
		switch {
		case err != nil:
			c.fail(err, keys...)
		case p.kind == "global" && len(r.Key) > 1:
			c.fail(errors.New("global means one partition for all and stands alone"), keys...)
		case p.kind == "path" && p.arg != "" && !r.bad["match"]:
			if err := m.names(p.arg); err != nil {
				c.fail(err, keys...)
			}
		}
	}
}

// keyAt are the keys that lead to part i of the rule's key.
func (r *Rule) keyAt(i int) []any {
	if n := r.node.Get("key"); len(r.Key) == 1 && (n == nil || n.Kind == String) {
		return []any{"key"}
	}
	return []any{"key", i}
}

// names is whether every path has a wildcard of that name.
func (m *matcher) names(name string) error {
	if len(m.paths) == 0 {
		return fmt.Errorf("key path:%s needs a path in match that has {%s}", name, name)
	}
	for i := range m.paths {
		if !m.paths[i].has(name) {
			return fmt.Errorf("key path:%s: not every path in match has {%s}", name, name)
		}
	}
	return nil
}

// checkUnit wants what headers can carry.
func checkUnit(unit string) error {
	if len(unit) > 64 || strings.IndexFunc(unit, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) >= 0 {
		return fmt.Errorf("%s is not a unit: up to 64 printable ASCII characters without quotes and backslashes, such as requests or content-bytes", quote(unit))
	}
	return nil
}

// reason is what a [weir.ConfigError] says without the name of the rule, which
// the path of a problem says better.
func reason(err error) error {
	var config *weir.ConfigError
	if errors.As(err, &config) {
		return config.Err
	}
	return err
}
