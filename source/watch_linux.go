package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const (
	// renamed is what can make a name in a directory mean another file.
	renamed = syscall.IN_CREATE | syscall.IN_DELETE | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO |
		syscall.IN_ATTRIB | syscall.IN_DELETE_SELF | syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR
	// written is what can make a file in a directory have other bytes. Reading
	// is no event, or we would wake ourselves.
	written = syscall.IN_MODIFY | syscall.IN_CLOSE_WRITE

	maxLinks = 40 // as the kernel has it, path_resolution(7)
)

// A watch tells by inotify(7) that something at a path may have changed. It
// watches directories, never files: a watch on a file stays with the file when
// another is renamed over it.
type watch struct {
	hints chan struct{} // holds one
	file  *os.File
	done  chan struct{}

	mu   sync.Mutex
	dirs map[int]*interest // by watch descriptor
}

// An interest is the names that matter in a directory: /tmp may be on the way to
// a file and busy all day with others.
type interest struct {
	mask      uint32
	names     map[string]bool
	documents bool // and all that isDocument
}

func (i *interest) has(name string) bool {
	return name == "" || i.names[name] || i.documents && isDocument(name)
}

func (i *interest) equal(j *interest) bool {
	return j != nil && i.mask == j.mask && i.documents == j.documents && maps.Equal(i.names, j.names)
}

func openWatch() (*watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("source: inotify: %w", err)
	}
	w := &watch{
		hints: make(chan struct{}, 1),
		// Being non-blocking it goes to the runtime's poller, so Close ends a Read.
		file: os.NewFile(uintptr(fd), "inotify"),
		done: make(chan struct{}),
		dirs: map[int]*interest{},
	}
	go w.listen()
	return w, nil
}

// close ends the goroutine of w and waits for it.
func (w *watch) close() {
	w.file.Close() // nothing was written to it that could fail
	<-w.done
}

// follow watches every directory in which path, as it leads now, is looked up,
// and no other. Its error says that at least one is not watched.
//
// What changes after path was resolved and before the watches stand is told by
// nobody. So it is resolved again until that needs no new watch: then they all
// stood before.
func (w *watch) follow(path string) error {
	for range maxLinks {
		dirs, err := interests(path)
		if err != nil {
			return err
		}
		changed, err := w.watch(dirs)
		if !changed {
			return err
		}
	}
	return fmt.Errorf("source: inotify: %s leads elsewhere each time it is resolved", path)
}

// watch replaces what is watched and reports whether anything was added.
func (w *watch) watch(dirs map[string]*interest) (changed bool, err error) {
	conn, err := w.file.SyscallConn()
	if err != nil {
		return false, err
	}
	// Held throughout, so that an event of a new watch waits for its entry.
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	err = conn.Control(func(fd uintptr) {
		watched := map[int]*interest{}
		for dir, i := range dirs {
			// For a directory that is watched already this returns the same descriptor.
			wd, err := syscall.InotifyAddWatch(int(fd), dir, i.mask)
			if err != nil {
				errs = append(errs, fmt.Errorf("source: inotify %s: %w", dir, err))
				continue
			}
			watched[wd] = i
			changed = changed || !i.equal(w.dirs[wd])
		}
		for wd := range w.dirs {
			if watched[wd] == nil {
				// Fails if the directory is gone, and the watch with it.
				syscall.InotifyRmWatch(int(fd), uint32(wd))
			}
		}
		w.dirs = watched
	})
	return changed, errors.Join(append(errs, err)...)
}

// listen turns events into hints until the file is closed. If reading fails
// otherwise, which inotify(7) does not foresee, polls remain.
func (w *watch) listen() {
	defer close(w.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		if w.matters(buf[:n]) {
			select {
			case w.hints <- struct{}{}:
			default:
			}
		}
	}
}

// matters reports whether one of the events in buf is of interest.
func (w *watch) matters(buf []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(buf) >= syscall.SizeofInotifyEvent {
		// struct inotify_event: wd, mask, cookie, length of the name, name padded with NULs.
		wd := int(int32(binary.NativeEndian.Uint32(buf)))
		mask := binary.NativeEndian.Uint32(buf[4:])
		end := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		name, _, _ := bytes.Cut(buf[syscall.SizeofInotifyEvent:end], []byte{0})
		buf = buf[end:]
		if mask&syscall.IN_Q_OVERFLOW != 0 {
			return true // events were lost
		}
		// One that is not in the map is left over from a watch that was removed.
		if i := w.dirs[wd]; i != nil && i.has(string(name)) {
			return true
		}
	}
	return false
}

// interests lists the directories to be watched for path: all on the way to it
// and, by way of symbolic links, to the files of a directory. For a file of a
// Kubernetes volume, /etc/weir/rules.yaml -> ..data/rules.yaml, these are
//
//	/              etc
//	/etc           weir
//	/etc/weir      rules.yaml, ..data
//	/etc/weir/..2026_03_01   rules.yaml
func interests(path string) (map[string]*interest, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	dirs := map[string]*interest{}
	target := trail(dirs, path)
	entries, err := os.ReadDir(target)
	if err != nil {
		return dirs, nil // not a directory, or not there or not readable: takeLook says which
	}
	at(dirs, target, renamed|written).documents = true
	for i, e := range entries {
		if isDocument(e.Name()) && e.Type()&os.ModeSymlink != 0 && i < maxParts {
			trail(dirs, filepath.Join(target, e.Name()))
		}
	}
	return dirs, nil
}

// trail resolves path as the kernel does, adds each name that is looked up on the
// way to the interest in its directory, and returns where it got.
func trail(dirs map[string]*interest, path string) string {
	rest := strings.Split(path, "/")
	dir := "/"
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir) // dir has no links in it
			continue
		}
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		mask := uint32(renamed)
		if err != nil || !info.IsDir() {
			mask |= written
		}
		at(dirs, dir, mask).names[name] = true
		if err != nil {
			return full
		}
		if info.Mode()&os.ModeSymlink == 0 {
			dir = full
			continue
		}
		to, err := os.Readlink(full)
		if links++; err != nil || links > maxLinks {
			return full
		}
		if filepath.IsAbs(to) {
			dir = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return dir
}

func at(dirs map[string]*interest, dir string, mask uint32) *interest {
	i := dirs[dir]
	if i == nil {
		i = &interest{names: map[string]bool{}}
		dirs[dir] = i
	}
	i.mask |= mask
	return i
}
