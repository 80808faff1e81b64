//go:build !linux

package source

import (
	"errors"
	"fmt"
)

// A watch is only had on Linux; elsewhere polls find every change.
type watch struct{ hints chan struct{} }

func openWatch() (*watch, error) {
	return nil, fmt.Errorf("source: no watch: %w", errors.ErrUnsupported)
}

func (w *watch) follow(string) error { return errors.ErrUnsupported }
func (w *watch) close()              {}
