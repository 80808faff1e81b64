package source

import (
	"fmt"
	"time"
)

// A Status is how a File is doing. Before the first Run it is zero.
type Status struct {
	Read     time.Time // when the path was last read, whatever came of it
	Offered  time.Time // when a document was last delivered, accepted or not
	Accepted time.Time // when one was last accepted; zero: there is none in force
	Version  string    // of the document in force, see Document.Version

	// Err is why the document in force is not the one on disk, as far as that has
	// been reported: it could not be read, keeps changing, or was rejected. It is
	// nil if they are the same.
	Err error

	Acceptances uint64 // documents accepted
	Rejections  uint64 // documents rejected
	ReadErrors  uint64 // errors that kept a document from being delivered; one that lasts counts once

	// Polling says that changes are found only by polls, at least some of them:
	// there is no inotify, or it ran out of watches, or may not watch a directory.
	Polling bool
}

// A Kind is what happened in an Event.
type Kind int

// The kinds of events.
const (
	_          Kind = iota
	Accepted        // the document was delivered and is in force
	Rejected        // the document was delivered and refused; the previous one stays
	Unreadable      // the document cannot be delivered; the previous one stays
	Recovered       // after Unreadable: it can be read, and is the one last delivered
)

// String returns the name of k in lower case, such as "accepted".
func (k Kind) String() string {
	switch k {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Unreadable:
		return "unreadable"
	case Recovered:
		return "recovered"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// An Event is something an operator may want to know about a File.
type Event struct {
	Kind    Kind
	Time    time.Time
	Path    string // the file or directory that is watched
	Version string // of the document it is about; empty for Unreadable
	Err     error  // what Deliver answered if Rejected, the reason if Unreadable, else nil
}

// Status returns how f is doing.
func (f *File) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *File) looked(at time.Time, polling bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Read, f.status.Polling = at, polling
}

func (f *File) answered(version string, answer error) {
	e := Event{Kind: Accepted, Time: time.Now(), Path: f.path, Version: version, Err: answer}
	f.mu.Lock()
	s := &f.status
	s.Offered, s.Err = e.Time, answer
	if answer == nil {
		s.Accepted, s.Version = e.Time, version
		s.Acceptances++
	} else {
		e.Kind = Rejected
		s.Rejections++
	}
	f.mu.Unlock()
	f.notify(e)
}

func (f *File) unreadable(err error) {
	f.mu.Lock()
	f.status.Err = err
	f.status.ReadErrors++
	f.mu.Unlock()
	f.notify(Event{Kind: Unreadable, Time: time.Now(), Path: f.path, Err: err})
}

// recovered is told the answer the document got when it was delivered: if it was
// rejected then, it still is.
func (f *File) recovered(version string, answer error) {
	f.mu.Lock()
	f.status.Err = answer
	f.mu.Unlock()
	f.notify(Event{Kind: Recovered, Time: time.Now(), Path: f.path, Version: version})
}

func (f *File) notify(e Event) {
	if f.options.Notify != nil {
		f.options.Notify(e)
	}
}
