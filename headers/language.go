package headers

import "strings"

// maxRanges bounds how many language ranges of a field are read.
const maxRanges = 32

// Language picks the language of an answer by an Accept-Language field (several
// lines joined with commas): the range with the greatest q that one of the
// available tags suits, the first of equals. A range suits the tag it equals,
// else a tag that it narrows (zh-CN suits zh), else one of the same language
// (zh suits zh-Hans, en-GB suits en-US), Chinese of the same script first. *
// suits a tag that no other range names. A range with q=0 excludes its tags.
//
// Without a match, or for junk, it is "en" if available, else the first tag
// available. With no available tags it is "en" or "zh", the languages this
// package writes. The work is bounded whatever the field holds.
func Language(acceptLanguage string, available []string) string {
	if len(available) == 0 {
		return Language(acceptLanguage, []string{"en", "zh"})
	}
	var ranges languageRanges
	ranges.parse(acceptLanguage)
	best, bestQ := -1, 0
	for _, r := range ranges.used() {
		if r.quality <= bestQ {
			continue
		}
		if i := ranges.lookup(r.tag, available); i >= 0 {
			best, bestQ = i, r.quality
		}
	}
	if best < 0 {
		best = fallback(available)
	}
	return available[best]
}

func fallback(available []string) int {
	for i, tag := range available {
		if strings.EqualFold(tag, "en") {
			return i
		}
	}
	return 0
}

type languageRange struct {
	tag     string
	quality int // thousandths
}

// languageRanges has a fixed size, so that parsing allocates nothing.
type languageRanges struct {
	all [maxRanges]languageRange
	n   int
}

func (rs *languageRanges) used() []languageRange { return rs.all[:rs.n] }

func (rs *languageRanges) parse(field string) {
	for rest := bounded(field); rest != "" && rs.n < maxRanges; {
		var element string
		element, rest = cutElement(rest)
		if tag, q, ok := splitQuality(element); ok {
			rs.all[rs.n] = languageRange{tag, q}
			rs.n++
		}
	}
}

// lookup returns the index of the available tag that suits a range best, -1 if
// none does.
func (rs *languageRanges) lookup(r string, available []string) int {
	if r == "*" {
		if i := fallback(available); !rs.names(available[i]) {
			return i
		}
		for i, tag := range available {
			if !rs.names(tag) {
				return i
			}
		}
		return -1
	}
	best, bestRank := -1, 0
	for i, tag := range available {
		if rank := suits(r, tag); rank > bestRank && !rs.excludes(tag) {
			best, bestRank = i, rank
		}
	}
	return best
}

// names says whether a range other than * covers the tag.
func (rs *languageRanges) names(tag string) bool {
	for _, r := range rs.used() {
		if covers(r.tag, tag) {
			return true
		}
	}
	return false
}

func (rs *languageRanges) excludes(tag string) bool {
	for _, r := range rs.used() {
		if r.quality == 0 && covers(r.tag, tag) {
			return true
		}
	}
	return false
}

// covers says whether the tag equals the range or narrows it (RFC 4647 §3.3.1).
func covers(r, tag string) bool {
	return len(tag) >= len(r) && strings.EqualFold(tag[:len(r)], r) &&
		(len(tag) == len(r) || tag[len(r)] == '-')
}

// suits ranks how well a tag suits a range; 0 is not at all. A tag that is
// longer in common with the range suits it better.
func suits(r, tag string) int {
	switch {
	case !strings.EqualFold(primary(r), primary(tag)):
		return 0
	case strings.EqualFold(primary(r), "zh") && traditional(r) != traditional(tag):
		return 1
	case covers(tag, r): // equal, or the range narrows the tag
		return 3 + len(tag)
	default:
		return 2
	}
}

func primary(tag string) string {
	p, _, _ := strings.Cut(tag, "-")
	return p
}

// traditional says whether a Chinese tag means 繁體, by its script or, without
// one, by its region.
func traditional(tag string) bool {
	for rest := tag; rest != ""; {
		var sub string
		sub, rest, _ = strings.Cut(rest, "-")
		if strings.EqualFold(sub, "Hans") {
			return false
		}
		for _, t := range [...]string{"Hant", "TW", "HK", "MO"} {
			if strings.EqualFold(sub, t) {
				return true
			}
		}
	}
	return false
}
