package rules

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir"
)

// Algorithm is a [weir.Algorithm] by its name.
type Algorithm weir.Algorithm

// Enum returns the names.
func (Algorithm) Enum() []string {
	return names(func(i int) (string, bool) {
		name := weir.Algorithm(i).String()
		_, ok := weir.ParseAlgorithm(name)
		return name, ok
	})
}

// MarshalText returns the name.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(weir.Algorithm(a).String()), nil }

// UnmarshalText reads a name.
func (a *Algorithm) UnmarshalText(text []byte) error { return set(a, a.Enum(), text) }

// Mode is a [weir.Mode] by its name.
type Mode weir.Mode

// Enum returns the names.
func (Mode) Enum() []string {
	return names(func(i int) (string, bool) {
		name := weir.Mode(i).String()
		_, ok := weir.ParseMode(name)
		return name, ok
	})
}

// MarshalText returns the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(weir.Mode(m).String()), nil }

// UnmarshalText reads a name.
func (m *Mode) UnmarshalText(text []byte) error { return set(m, m.Enum(), text) }

// MissingKey says what becomes of a request without the rule's key.
type MissingKey uint8

const (
	// MissingIP counts it by the client's address, apart from real keys; one without
	// an address shares a partition with its like. It is the zero value.
	MissingIP MissingKey = iota
	// MissingSkip lets the rule not apply.
	MissingSkip
	// MissingShared puts all such requests into one partition of their own.
	MissingShared
	// MissingRefuse refuses the request.
	MissingRefuse
)

// Enum returns the names.
func (MissingKey) Enum() []string { return []string{"ip", "skip", "shared", "refuse"} }

// MarshalText returns the name.
func (m MissingKey) MarshalText() ([]byte, error) { return get(m, m.Enum()) }

// UnmarshalText reads a name.
func (m *MissingKey) UnmarshalText(text []byte) error { return set(m, m.Enum(), text) }

// Outage says who decides while the store cannot: a [weir.Outage] by its name.
type Outage weir.Outage

// Enum returns the names.
func (Outage) Enum() []string { return []string{"local", "open", "closed"} }

// MarshalText returns the name.
func (o Outage) MarshalText() ([]byte, error) { return get(o, o.Enum()) }

// UnmarshalText reads a name.
func (o *Outage) UnmarshalText(text []byte) error { return set(o, o.Enum(), text) }

// Sharing says how nodes share a limit through a store of their own, such as Redis.
type Sharing uint8

const (
	// Strict asks the store for every unit. It is the zero value.
	Strict Sharing = iota
	// Fast lets a node take units ahead and decide by itself while they last. No more
	// is ever allowed; a little may go unused.
	Fast
)

// Enum returns the names.
func (Sharing) Enum() []string { return []string{"strict", "fast"} }

// MarshalText returns the name.
func (s Sharing) MarshalText() ([]byte, error) { return get(s, s.Enum()) }

// UnmarshalText reads a name.
func (s *Sharing) UnmarshalText(text []byte) error { return set(s, s.Enum(), text) }

// names lists the names that at has for 0, 1, 2… until it has none.
func names(at func(i int) (string, bool)) (all []string) {
	for i := 0; ; i++ {
		name, ok := at(i)
		if !ok {
			return all
		}
		all = append(all, name)
	}
}

// get is the word of value v.
func get[T ~uint8](v T, words []string) ([]byte, error) {
	if int(v) >= len(words) {
		return nil, fmt.Errorf("rules: no word for %d", v)
	}
	return []byte(words[v]), nil
}

// set sets v to the position of a word.
func set[T ~uint8](v *T, words []string, text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		near := ""
		if n := nearest(string(text), words); n != "" {
			near = fmt.Sprintf("; did you mean %q?", n)
		}
		return fmt.Errorf("%s is not one of %s%s", quote(string(text)), oneOf(words), near)
	}
	*v = T(i)
	return nil
}
