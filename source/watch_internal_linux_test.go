package source

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// names lists what is watched below root: names in a directory, and * if all
// documents in it are.
func names(t *testing.T, root, path string) map[string][]string {
	t.Helper()
	dirs, err := interests(path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for dir, i := range dirs {
		rel, err := filepath.Rel(root, dir)
		if err != nil || !filepath.IsLocal(rel) {
			continue // above root
		}
		got[rel] = slices.Sorted(maps.Keys(i.names))
		if i.documents {
			got[rel] = append(got[rel], "*")
		}
	}
	return got
}

func TestEveryDirectoryOnTheWayIsWatched(t *testing.T) {
	root := t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(root, name) }
	check(os.MkdirAll(in("volume/..2026"), 0o755))
	check(os.WriteFile(in("volume/..2026/rules.yaml"), []byte("x"), 0o644))
	check(os.Symlink("..2026", in("volume/..data")))
	check(os.Symlink("..data/rules.yaml", in("volume/rules.yaml")))
	check(os.Symlink("nowhere/a", in("dangling")))
	check(os.Symlink("loop", in("loop")))
	check(os.Symlink(in("volume/../volume"), in("absolute")))

	for _, c := range []struct {
		path string
		want map[string][]string
	}{
		{"missing", map[string][]string{".": {"missing"}}},
		{"missing/too", map[string][]string{".": {"missing"}}},
		{"dangling", map[string][]string{".": {"dangling", "nowhere"}}},
		{"loop", map[string][]string{".": {"loop"}}},
		{"volume/..2026", map[string][]string{".": {"volume"}, "volume": {"..2026"}, "volume/..2026": {"*"}}},
		{"volume/rules.yaml", map[string][]string{".": {"volume"},
			"volume": {"..2026", "..data", "rules.yaml"}, "volume/..2026": {"rules.yaml"}}},
		{"volume", map[string][]string{".": {"volume"},
			"volume": {"..2026", "..data", "rules.yaml", "*"}, "volume/..2026": {"rules.yaml"}}},
		{"absolute/rules.yaml", map[string][]string{".": {"absolute", "volume"},
			"volume": {"..2026", "..data", "rules.yaml"}, "volume/..2026": {"rules.yaml"}}},
	} {
		if got := names(t, root, in(c.path)); !maps.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", c.path, got, c.want)
		}
	}
}

// /tmp may be on the way, and busy all day with the files of others.
func TestNeighboursAreNoHint(t *testing.T) {
	event := func(wd int32, mask uint32, name string) []byte {
		padded := make([]byte, (len(name)+15)/16*16)
		copy(padded, name)
		b := binary.NativeEndian.AppendUint32(nil, uint32(wd))
		b = binary.NativeEndian.AppendUint32(b, mask)
		b = binary.NativeEndian.AppendUint32(b, 0)
		b = binary.NativeEndian.AppendUint32(b, uint32(len(padded)))
		return append(b, padded...)
	}
	w := &watch{dirs: map[int]*interest{
		1: {names: map[string]bool{"weir": true}},
		2: {names: map[string]bool{"..data": true}, documents: true},
	}}
	noise := slices.Concat(
		event(1, syscall.IN_CREATE, "neighbour"),
		event(1, syscall.IN_CREATE, "rules.yaml"), // not in this directory
		event(2, syscall.IN_MODIFY, ".rules.yaml.swp"),
		event(2, syscall.IN_CREATE, "4913"),
		event(3, syscall.IN_MODIFY, "rules.yaml"), // a watch that was removed
		event(3, syscall.IN_IGNORED, ""),
	)
	for _, c := range []struct {
		name  string
		event []byte
		want  bool
	}{
		{"neighbours only", nil, false},
		{"a name on the way", event(1, syscall.IN_MOVED_TO, "weir"), true},
		{"a link", event(2, syscall.IN_MOVED_TO, "..data"), true},
		{"a document", event(2, syscall.IN_MODIFY, "rules.yaml"), true},
		{"the directory itself", event(2, syscall.IN_DELETE_SELF, ""), true},
		{"lost events", event(-1, syscall.IN_Q_OVERFLOW, ""), true},
	} {
		if got := w.matters(append(slices.Clip(noise), c.event...)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
