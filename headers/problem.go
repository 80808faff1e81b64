package headers

// ProblemType is the media type of what [AppendProblem] appends.
const ProblemType = "application/problem+json"

// Problem is a refusal as a problem document of RFC 9457.
type Problem struct {
	Refusal

	// Status is the HTTP status of the answer; 0 is the reason's own.
	Status int

	// Lang is the language of title and detail, as [Language] returns it.
	Lang string

	// Title is the short summary of the problem type, Detail what happened this
	// time; empty: a text in Lang.
	Title, Detail string

	// Instance is the URI reference of this occurrence; left out when empty.
	Instance string
}

// AppendProblem appends p as one JSON object without line breaks: type, title,
// status, detail, instance, violated-policies (the names of the policies that
// refused, in their order; the draft's extension member) and retry-after (ours:
// the number in the Retry-After field; absent when waiting cannot help).
func AppendProblem(dst []byte, p Problem) []byte {
	dst = append(dst, `{"type":"`...)
	dst = inJSON.text(dst, p.Reason.Type())
	dst = append(dst, `","title":"`...)
	if p.Title != "" {
		dst = inJSON.text(dst, p.Title)
	} else {
		dst = inJSON.text(dst, wordsOf(p.Lang).title(p.Reason))
	}
	dst = append(dst, `","status":`...)
	if p.Status == 0 {
		p.Status = p.Reason.Status()
	}
	dst = inJSON.number(dst, int64(p.Status))
	dst = append(dst, `,"detail":"`...)
	if p.Detail != "" {
		dst = inJSON.text(dst, p.Detail)
	} else {
		dst = appendMessage(dst, sentenceInJSON, p.Lang, &p.Refusal)
	}
	dst = append(dst, '"')
	if p.Instance != "" {
		dst = append(dst, `,"instance":"`...)
		dst = inJSON.text(dst, p.Instance)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"violated-policies":[`...)
	first := true
	for i := range p.Limits {
		if !p.Limits[i].Refused {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '"')
		dst = inJSON.text(dst, p.Limits[i].Policy)
		dst = append(dst, '"')
	}
	dst = append(dst, ']')
	if wait := p.wait(); wait >= 0 {
		dst = append(dst, `,"retry-after":`...)
		dst = inJSON.number(dst, retrySeconds(wait))
	}
	return append(dst, '}')
}
