package source_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirhq/weir/source"
)

func TestStaticIsDeliveredOnce(t *testing.T) {
	s := source.Static{Name: "built in", Parts: []source.Part{{Name: "rules.yaml", Data: []byte("rules: []\n")}}}
	wrong := errors.New("no")
	for _, answer := range []error{nil, wrong} {
		n := 0
		err := s.Run(t.Context(), func(_ context.Context, d source.Document) error {
			n++
			if d.Name != "built in" || string(d.Parts[0].Data) != "rules: []\n" {
				t.Errorf("delivered %+v", d)
			}
			return answer
		})
		if err != answer || n != 1 {
			t.Errorf("Run = %v after %d deliveries, want %v after one", err, n, answer)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Run(ctx, func(context.Context, source.Document) error {
		t.Error("delivered after the end")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
}

// The wanted versions were computed with sha256sum(1) of coreutils.
func TestVersionIsWhatSha256sumPrints(t *testing.T) {
	a := source.Part{Name: "/etc/weir/a.yaml", Data: []byte("rules: []\n")}
	b := source.Part{Name: "/etc/weir/b.json", Data: []byte("{}\n")}
	for _, c := range []struct {
		parts []source.Part
		want  string
	}{
		{[]source.Part{a}, "e0dfa70eb69d47fe9cb2be8a4fcd53e74cf7fe26fcbb1f06912b57a9c028e4e0"},
		{[]source.Part{a, b}, "c997779ef21de38b53ef8cdcca4d125cbcf8435f75998de68bd2b483d931214a"},
	} {
		if got := (source.Document{Parts: c.parts}).Version(); got != c.want {
			t.Errorf("version %s, want %s", got, c.want)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[source.Kind]string{
		source.Accepted: "accepted", source.Rejected: "rejected",
		source.Unreadable: "unreadable", source.Recovered: "recovered", 0: "kind 0",
	} {
		if k.String() != want {
			t.Errorf("%d is %q, want %q", int(k), k, want)
		}
	}
}
