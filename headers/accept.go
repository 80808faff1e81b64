package headers

import "strings"

// maxAccept bounds how much of an Accept or Accept-Language field is read, in
// bytes. Browsers send a tenth of it; what lies beyond is ignored.
const maxAccept = 1024

// WantsHTML says whether a client with this Accept field (several lines joined
// with commas) should get the page rather than the problem document: it names
// text/html (or text/*), and rates it above JSON or names it more precisely.
// So browsers get the page; curl, fetch and clients that name both alike get
// the problem (RFC 9110 §12.5.1).
//
// Parameters other than q are ignored, elements with a malformed q too.
func WantsHTML(accept string) bool {
	var html, json preference
	for rest := bounded(accept); rest != ""; {
		var element string
		element, rest = cutElement(rest)
		media, q, ok := splitQuality(element)
		if !ok {
			continue
		}
		switch {
		case strings.EqualFold(media, "text/html"):
			html.take(exact, q)
		case strings.EqualFold(media, "text/*"):
			html.take(anySubtype, q)
		case strings.EqualFold(media, "application/json"), strings.EqualFold(media, ProblemType):
			json.take(exact, q)
		case strings.EqualFold(media, "application/*"):
			json.take(anySubtype, q)
		case media == "*/*":
			html.take(anything, q)
			json.take(anything, q)
		}
	}
	if html.precision <= anything || html.quality == 0 {
		return false
	}
	if html.quality != json.quality {
		return html.quality > json.quality
	}
	return html.precision > json.precision
}

// preference is how much a client wants a media type: the most precise range
// that covers it decides, the greatest quality among equals.
type preference struct {
	precision precision
	quality   int // thousandths
}

type precision uint8

const (
	unnamed precision = iota
	anything
	anySubtype
	exact
)

func (p *preference) take(precision precision, quality int) {
	if precision > p.precision {
		*p = preference{precision, quality}
	} else if precision == p.precision {
		p.quality = max(p.quality, quality)
	}
}

// bounded cuts a field to its first maxAccept bytes, at an element's end.
func bounded(field string) string {
	if len(field) <= maxAccept {
		return field
	}
	return field[:max(strings.LastIndexByte(field[:maxAccept], ','), 0)]
}

// cutElement cuts a list at its first comma outside of a quoted string.
func cutElement(list string) (element, rest string) {
	i := indexUnquoted(list, ',')
	if i < 0 {
		return list, ""
	}
	return list[:i], list[i+1:]
}

// indexUnquoted finds c outside of quoted strings (RFC 9110 §5.6.4).
func indexUnquoted(s string, c byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == c && !quoted:
			return i
		}
	}
	return -1
}

// splitQuality splits an element into its value and its q in thousandths,
// 1000 if it has none; ok is false if q is malformed or the value empty.
func splitQuality(element string) (value string, q int, ok bool) {
	value, params, q := element, "", 1000
	if i := indexUnquoted(element, ';'); i >= 0 {
		value, params = element[:i], element[i+1:]
	}
	for params != "" {
		param := params
		if i := indexUnquoted(params, ';'); i >= 0 {
			param, params = params[:i], params[i+1:]
		} else {
			params = ""
		}
		name, weight, _ := strings.Cut(param, "=")
		if strings.EqualFold(trim(name), "q") {
			if q, ok = quality(trim(weight)); !ok {
				return "", 0, false
			}
		}
	}
	value = trim(value)
	return value, q, value != ""
}

// quality parses a qvalue (RFC 9110 §12.4.2): 0 to 1 with three decimals at
// most, in thousandths.
func quality(s string) (q int, ok bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(decimals) > 3 {
		return 0, false
	}
	q = int(whole[0] - '0')
	for i := range 3 {
		q *= 10
		if i < len(decimals) {
			if decimals[i] < '0' || decimals[i] > '9' {
				return 0, false
			}
			q += int(decimals[i] - '0')
		}
	}
	return q, q <= 1000
}

func trim(s string) string { return strings.Trim(s, " \t") }
