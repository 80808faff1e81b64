package source

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// maxParts bounds the files of a directory.
const maxParts = 1000

// A look is one reading of all files of a document.
type look struct {
	start, end time.Time
	document   Document
	err        error     // why there is no document
	content    string    // equal for equal names and bytes, empty if there is an error
	print      string    // equal if nothing has changed at all, never empty
	newest     time.Time // the last modification of anything read, zero if there is an error

	contents, stamps []byte // what content and print are made of, a line for each part
}

// takeLook reads the file or the directory at path, which may change while it
// does; that two looks are alike is what says that it did not.
func takeLook(path string, limit int64) look {
	l := look{start: time.Now(), document: Document{Name: path}}
	if l.err = l.read(path, limit); l.err != nil {
		l.document.Parts, l.newest = nil, time.Time{}
		l.print = "error " + l.err.Error()
	} else {
		l.content = string(l.contents)
		l.print = l.content + string(l.stamps)
	}
	l.end = time.Now()
	return l
}

func (l *look) read(path string, limit int64) error {
	before, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if !before.IsDir() {
		_, err := l.part(path, limit)
		return err
	}

	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	left := limit
	for _, e := range entries {
		name := e.Name()
		if !isDocument(name) {
			continue
		}
		if strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("source: file name %q in %s has a control character; rename it", name, path)
		}
		if len(l.document.Parts) == maxParts {
			return fmt.Errorf("source: %s is %w: it has more than %d files", path, ErrTooLarge, maxParts)
		}
		n, err := l.part(filepath.Join(path, name), left)
		if err != nil {
			return err
		}
		left -= n
	}
	if len(l.document.Parts) == 0 {
		return fmt.Errorf("source: directory %s is %w; it must have a file named *.yaml, *.yml or *.json", path, ErrEmpty)
	}

	// Files that came or went show in the directory's own time. A path that leads
	// elsewhere by now was swapped meanwhile.
	after, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	l.modified(after.ModTime())
	if !os.SameFile(before, after) {
		l.modified(time.Now())
	}
	return nil
}

// part reads one file of at most limit bytes and returns how many it has.
func (l *look) part(name string, limit int64) (int64, error) {
	// Asked before it is opened: to open a named pipe is to wait for its writer.
	info, err := os.Stat(name)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("source: %s is not a regular file but %v", name, info.Mode().Type())
	}
	if info.Size() > limit { // most often known before it is read
		return 0, tooLarge(name, limit)
	}
	f, err := os.Open(name)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	n := int64(len(data))
	if n > limit {
		return 0, tooLarge(name, limit)
	}
	if n == 0 {
		return 0, fmt.Errorf("source: %s is %w; it may be being written, or the disk was full", name, ErrEmpty)
	}
	// Asked after it was read: a write during the reading shows in these.
	if info, err = f.Stat(); err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}

	l.document.Parts = append(l.document.Parts, Part{Name: name, Data: data})
	l.contents = fmt.Appendf(l.contents, "%s %q\n", sum(data), name)
	l.stamps = fmt.Appendf(l.stamps, "%d %d\n", info.Size(), info.ModTime().UnixNano())
	l.modified(info.ModTime())
	return n, nil
}

func tooLarge(name string, limit int64) error {
	return fmt.Errorf("source: %s is %w: it has more than the %d bytes left for it",
		name, ErrTooLarge, limit)
}

func (l *look) modified(t time.Time) {
	if t.After(l.newest) {
		l.newest = t
	}
}

// isDocument tells the files of a directory that count from those that editors
// leave beside them, such as .rules.yaml.swp, 4913, rules.yaml~ and Emacs' lock
// .#rules.yaml, and from ..data of Kubernetes.
func isDocument(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
