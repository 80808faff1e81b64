package accesslog

import "testing"

// This test is inside the package since the bound is too large to be reached by
// reading.
func TestWaitingTextIsBounded(t *testing.T) {
	p := &pool{maxOut: 10}
	o := newOrder(p, 1000)
	add := func(at int64, bytes int) {
		slot := p.get()
		p.at(slot).At = at
		o.add(slot, bytes)
	}
	next := func() bool {
		_, ok := o.next(false)
		return ok
	}
	add(1, maxWaitingBytes/2)
	if next() {
		t.Error("delivered early although half of the bytes are free")
	}
	add(2, maxWaitingBytes/2)
	if !next() {
		t.Error("not delivered although no bytes are free")
	}
	if next() {
		t.Error("what was delivered still counts")
	}
	if p.out != 1 || p.bytes != maxWaitingBytes/2 {
		t.Errorf("%d records of %d bytes wait", p.out, p.bytes)
	}
}
