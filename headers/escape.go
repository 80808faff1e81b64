package headers

import (
	"strconv"
	"unicode/utf8"
)

// escaping is how text is written into its surroundings. Sentences are built
// by appending piece after piece through it, so that no unescaped copy of a
// name ever exists in a problem or a page.
type escaping uint8

const (
	plain          escaping = iota // control characters and invalid UTF-8 become U+FFFD
	inHTML                         // the same inside of HTML text or a quoted attribute
	sentenceInJSON                 // the same inside of a JSON string
	inJSON                         // the value itself in a JSON string, as encoding/json writes it
)

// text appends s.
func (e escaping) text(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if invalid := r == utf8.RuneError && n == 1; invalid {
			dst = e.invalid(dst)
		} else if out, ok := e.special(dst, r); ok {
			dst = out
		} else {
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

// number appends n in decimal digits.
func (e escaping) number(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

func (e escaping) invalid(dst []byte) []byte {
	if e == inJSON {
		return append(dst, `\ufffd`...)
	}
	return append(dst, "\uFFFD"...)
}

// special appends what stands for r if r may not stand for itself.
func (e escaping) special(dst []byte, r rune) ([]byte, bool) {
	if control := r < ' ' || r >= 0x7F && r < 0xA0; control && e != inJSON {
		return append(dst, "\uFFFD"...), true
	}
	switch e {
	case inHTML:
		return specialHTML(dst, r)
	case inJSON, sentenceInJSON:
		return specialJSON(dst, r)
	}
	return dst, false
}

func specialHTML(dst []byte, r rune) ([]byte, bool) {
	switch r {
	case '&':
		return append(dst, "&amp;"...), true
	case '<':
		return append(dst, "&lt;"...), true
	case '>':
		return append(dst, "&gt;"...), true
	case '"':
		return append(dst, "&#34;"...), true
	case '\'':
		return append(dst, "&#39;"...), true
	}
	return dst, false
}

// specialJSON escapes more than RFC 8259 asks for, as encoding/json does: <, >
// and & for readers that take the document for HTML, U+2028 and U+2029 for
// those that take it for JavaScript.
func specialJSON(dst []byte, r rune) ([]byte, bool) {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r)), true
	case '\b':
		return append(dst, `\b`...), true
	case '\f':
		return append(dst, `\f`...), true
	case '\n':
		return append(dst, `\n`...), true
	case '\r':
		return append(dst, `\r`...), true
	case '\t':
		return append(dst, `\t`...), true
	case '<', '>', '&', '\u2028', '\u2029':
	default:
		if r >= ' ' {
			return dst, false
		}
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]), true
}
