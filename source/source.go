// Package source delivers rule documents: once from memory, or from a file or a
// directory of files that is watched for changes.
//
// A source reads and hands over. It does not know what a document means: who
// takes it parses it, and answers with an error if the old one is to stay in
// force.
//
//	file, err := source.NewFile("/etc/weir/rules.yaml", source.Options{Notify: log})
//	...
//	err = file.Run(ctx, func(ctx context.Context, d source.Document) error {
//		return swap(d) // an error: the document is rejected, the old rules live on
//	})
//
// # What is promised
//
// Half a rule document may be a valid one with fewer rules, so nothing is
// delivered that may still be in the making. A document is delivered after all
// of its files were read twice, at least [Options].Quiet apart, with the same
// names, sizes, modification times and contents (SHA-256). The first document of
// a Run needs no second reading if its files were all last modified that long
// ago. An empty file is never delivered: it is what a writer leaves that has
// truncated it and not yet written, or that found the disk full.
//
// Content alone cannot tell a finished write from one whose writer stopped
// halfway for longer than the quiet time. Who cannot have that writes a new
// file and renames it over the old one, as editors do, or swaps a symbolic link,
// as Kubernetes does.
//
// Nor is anything ever delivered early. While a document keeps changing, however
// long, the last one stays in force; after [Options].MaxDelay that is reported
// as [ErrUnsettled].
//
// A file that vanishes, cannot be read, is empty or too large takes nothing
// away: the last document stays in force, the error is reported, and the file is
// picked up when it is back. The same content is not delivered twice, unless
// [File.Reload] asks for it.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// Deliver hands over one document. Its error says that the document was rejected
// and the previous one lives on; it is reported, and the document is not
// delivered again until it changes or a reload is asked for. A Source calls it
// from one goroutine at a time and waits for it, so one that is slow delays the
// next document and nothing else. ctx is the one given to Run.
type Deliver func(ctx context.Context, d Document) error

// A Source delivers documents.
type Source interface {
	// Run delivers the document there is, then each that replaces it. It returns
	// the error of ctx when that ends, or earlier if no other document can ever
	// come, and not before every goroutine it started has ended.
	Run(ctx context.Context, deliver Deliver) error
}

// A Document is a set of rules as it was written, in one part or in several that
// belong together. It belongs to whom it was delivered to.
type Document struct {
	Name  string // where it comes from: the path of the file or of the directory
	Parts []Part // one for a file; for a directory one for each file in it, by name
}

// A Part is one file of a document, to be parsed by itself, so that problems
// have its name and its line numbers.
type Part struct {
	Name string // as shown in problems: the path of the file
	Data []byte // never empty when a File delivers it
}

// Version identifies the content of d: equal documents have equal versions on
// every node, wherever they are mounted. It is the SHA-256 of the part, in hex,
// as sha256sum prints it; of several parts, the SHA-256 of what sha256sum prints
// for them (sha256sum a.yaml b.yaml | sha256sum).
func (d Document) Version() string {
	if len(d.Parts) == 1 {
		return sum(d.Parts[0].Data)
	}
	var list []byte
	for _, p := range d.Parts {
		list = fmt.Appendf(list, "%s  %s\n", sum(p.Data), filepath.Base(p.Name))
	}
	return sum(list)
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// Static is a document that never changes. Its Run delivers it once and returns
// the answer, since no other can follow. It may run any number of times at once.
type Static Document

// Run delivers the document.
func (s Static) Run(ctx context.Context, deliver Deliver) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return deliver(ctx, Document(s))
}

var (
	_ Source = Static{}
	_ Source = (*File)(nil)
)
