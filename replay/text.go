package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TextOptions are how a table is written. The zero value is for a file.
type TextOptions struct {
	// Colour writes escape sequences for a terminal.
	Colour bool
}

// printer lays tables out. Cells are aligned before they are coloured, since
// escape sequences take no room on a terminal.
type printer struct {
	strings.Builder
	colour bool
}

func (p *printer) paint(code, s string) string {
	if !p.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

const (
	bold  = "1"
	faint = "2"
	red   = "31"
	amber = "33"
)

// table writes rows of cells, numbers to the right; the first row is the head.
// style is the colour of a cell of a row after the first.
func (p *printer) table(indent string, rows [][]string, style func(row, column int) string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], columns(cell))
		}
	}
	for r, row := range rows {
		line := indent
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-columns(cell))
			code := faint
			if r > 0 {
				code = style(r, i)
			}
			if cell = p.paintIf(code, cell); i > 0 && isNumber(rows[len(rows)-1][i]) {
				cell = pad + cell
			} else {
				cell += pad
			}
			if line += cell; i < len(row)-1 {
				line += "  "
			}
		}
		p.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func (p *printer) paintIf(code, s string) string {
	if code == "" {
		return s
	}
	return p.paint(code, s)
}

// columns is how wide a text is, as far as most are: one column a character, two
// for those of East Asian scripts.
func columns(s string) int {
	n := 0
	for _, c := range s {
		if n++; c >= 0x1100 && c <= 0x115f || c >= 0x2e80 && c <= 0xa4cf || c >= 0xac00 && c <= 0xd7a3 ||
			c >= 0xf900 && c <= 0xfaff || c >= 0xff00 && c <= 0xff60 || c >= 0x1f300 && c <= 0x1faff {
			n++
		}
	}
	return n
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789, .%") == "" }

// number writes n with commas between the thousands.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// percent is part of whole in per cent, empty if there is none.
func percent(part, whole int64) string {
	switch {
	case part == 0 || whole == 0:
		return ""
	case part*1000 < whole: // 0.0 % would be none
		return "<0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// maxCell is how long a key may be in a table.
const maxCell = 64

// cell cuts a text that is too long for a table.
func cell(s string) string {
	if r := []rune(s); len(r) > maxCell {
		return string(r[:maxCell-1]) + "…"
	}
	return s
}

// WriteText writes the report for people.
func (p *Report) WriteText(w io.Writer, o TextOptions) error {
	out := &printer{colour: o.Colour}
	if p.Requests == 0 { // no times, no rules asked: only what was wrong with the lines
		fmt.Fprintf(out, "no requests in %s lines\n", number(p.Lines))
		p.writeNotes(out)
		_, err := io.WriteString(w, out.String())
		return err
	}
	fmt.Fprintf(out, "%s requests, %s\n", out.paint(bold, number(p.Requests)), span(p.From, p.To))
	fmt.Fprintf(out, "%s allowed, %s refused", number(p.Allowed), out.paintIf(when(p.Refused > 0, red), number(p.Refused)))
	if s := percent(p.Refused, p.Requests); s != "" {
		out.WriteString(" (" + s + ")")
	}
	out.WriteString("\n\n")

	rows := [][]string{{"RULE", "MODE", "ASKED", "ALLOWED", "REFUSED", "WOULD REFUSE", "KEYS", "KEYS REFUSED"}}
	for i := range p.Rules {
		r := &p.Rules[i]
		rows = append(rows, []string{r.Name, r.Mode, number(r.Asked), number(r.Allowed), number(r.Refused),
			number(r.WouldRefuse), number(r.Keys), number(r.KeysRefused + r.KeysWouldRefuse)})
	}
	out.table("", rows, func(row, column int) string {
		r := &p.Rules[row-1]
		switch {
		case column == 0:
			return bold
		case column == 4 && r.Refused > 0:
			return red
		case column == 5 && r.WouldRefuse > 0:
			return amber
		}
		return ""
	})
	for i := range p.Rules {
		p.Rules[i].writeText(out)
	}
	p.writeNotes(out)
	_, err := io.WriteString(w, out.String())
	return err
}

func when(b bool, code string) string {
	if b {
		return code
	}
	return ""
}

// writeText writes what there is to say of one rule beyond its line.
func (r *RuleReport) writeText(out *printer) {
	if r.Asked == 0 || len(r.Limits) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s  %s by %s\n", out.paint(bold, r.Name), strings.Join(r.Limits, " and "), r.Key)
	r.writePeaks(out)
	if len(r.Top) == 0 {
		return
	}
	out.WriteString("\n")
	head := "REFUSED"
	if r.WouldRefuse > 0 {
		head = "WOULD REFUSE"
	}
	rows := [][]string{{"KEY", "ASKED", head}}
	for _, k := range r.Top {
		rows = append(rows, []string{cell(k.Key), number(k.Asked), number(k.Refused + k.WouldRefuse)})
	}
	out.table("  ", rows, func(row, column int) string {
		if k := r.Top[row-1]; column == 2 && k.Refused > 0 {
			return red
		} else if column == 2 && k.WouldRefuse > 0 {
			return amber
		}
		return ""
	})
	if r.TopError > 0 {
		fmt.Fprintf(out, "  %s\n", out.paint(amber, r.topError()))
	}
}

// writePeaks writes how fast the keys ask.
func (r *RuleReport) writePeaks(out *printer) {
	rows := [][]string{{"most of one key in any"}}
	for _, q := range quantiles {
		rows[0] = append(rows[0], q.name)
	}
	for i, peaks := range r.peaks() {
		row := []string{windowNames[i]}
		for _, q := range quantiles {
			row = append(row, number(peaks.Quantile(q.share)))
		}
		rows = append(rows, row)
	}
	out.table("  ", rows, func(int, int) string { return "" })
}

// topError says how good the figures of a rule with too many keys are.
func (r *RuleReport) topError() string {
	return fmt.Sprintf("too many keys to keep: each of these may have up to %s more, and the numbers of keys are estimates (±0.8 %%)", number(r.TopError))
}

// writeNotes writes what was not replayed, or not quite.
func (p *Report) writeNotes(out *printer) {
	notes := p.notes()
	if len(notes) == 0 {
		return
	}
	out.WriteString("\n")
	for _, n := range notes {
		out.WriteString(out.paint(amber, n) + "\n")
	}
	for _, e := range p.Examples {
		fmt.Fprintf(out, "  %s:%d: %s: %s\n", plain(e.File, ""), e.Line, e.Reason, cell(e.Excerpt))
	}
}

// notes are what a reader of the figures should know.
func (p *Report) notes() []string {
	var notes []string
	note := func(n int64, what string) {
		if n > 0 {
			notes = append(notes, what+": "+number(n))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(p.SkippedBy)) {
		note(p.SkippedBy[reason], "lines skipped, "+reason)
	}
	note(p.Late, "lines out of order by more than the window, replayed at the time of the line before")
	note(p.BadPaths, "requests whose path has no normal form, which a gateway answers 400 before any rule")
	note(p.Overflow, "decisions that shared a counter, as there are more keys than the store may hold")
	return notes
}

// span says from when to when, and how long that is.
func span(from, to time.Time) string {
	const layout = "2006-01-02 15:04:05"
	long := to.Sub(from).Round(time.Second)
	text := long.String()
	if days := long / (24 * time.Hour); days > 0 {
		text = fmt.Sprintf("%dd%s", days, long%(24*time.Hour))
	}
	return fmt.Sprintf("%s – %s UTC (%s)", from.Format(layout), to.Format(layout), text)
}
