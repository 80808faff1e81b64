package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirhq/weir/accesslog"
)

// line is a combined line of a request for /path at a second of the first of May.
func line(second int, path string) string {
	when := time.Date(2026, 5, 1, 0, 0, second, 0, time.UTC)
	return fmt.Sprintf("192.0.2.1 - - [%s] \"GET /%s HTTP/1.1\" 200 1 \"-\" \"-\"\n", when.Format("02/Jan/2006:15:04:05 -0700"), path)
}

// write puts a log into a directory of the test, compressed if its name says so.
func write(t *testing.T, name, text string) string {
	t.Helper()
	content := []byte(text)
	if strings.HasSuffix(name, ".gz") {
		content = zipped(t, text)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t *testing.T, names []string, stdin io.Reader, opts accesslog.Options) *accesslog.Reader {
	t.Helper()
	r, err := accesslog.Open(names, stdin, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// drain returns what is delivered, as "path@second" with a star if it was late.
func drain(t *testing.T, r *accesslog.Reader) string {
	t.Helper()
	var got []string
	var last int64
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return strings.Join(got, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.At < last {
			t.Errorf("%s:%d goes back in time to %v", rec.File, rec.Line, rec.Time())
		}
		last = rec.At
		late := ""
		if rec.Late {
			late = "*"
		}
		first := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		got = append(got, fmt.Sprintf("%s@%d%s", strings.TrimPrefix(rec.Path, "/"), int(rec.Time().Sub(first).Seconds()), late))
	}
}

func stdinOf(t *testing.T, text string, opts accesslog.Options) *accesslog.Reader {
	t.Helper()
	return open(t, []string{"-"}, strings.NewReader(text), opts)
}

func TestLinesWithinTheWindowArePutInOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		opts accesslog.Options
		want string
		late int64
	}{
		{
			"in order already", line(0, "a") + line(1, "b") + line(2, "c"),
			accesslog.Options{}, "a@0 b@1 c@2", 0,
		},
		{
			"backwards", line(120, "a") + line(60, "b") + line(0, "c"),
			accesslog.Options{}, "c@0 b@60 a@120", 0,
		},
		{
			"equal times keep the order of lines", line(1, "a") + line(2, "b") + line(1, "c") + line(0, "d") + line(1, "e") + line(2, "f"),
			accesslog.Options{}, "d@0 a@1 c@1 e@1 b@2 f@2", 0,
		},
		{
			"exactly the window is not late", line(0, "a") + line(130, "b") + line(10, "c"),
			accesslog.Options{}, "a@0 c@10 b@130", 0,
		},
		{
			"behind the window, but nothing later was delivered", line(0, "a") + line(200, "b") + line(10, "c"),
			accesslog.Options{}, "a@0 c@10 b@200", 0,
		},
		{
			"late ones move up", line(0, "a") + line(50, "b") + line(171, "c") + line(49, "d") + line(172, "e"),
			accesslog.Options{}, "a@0 b@50 d@50* c@171 e@172", 1,
		},
		{
			"late ones are left out", line(0, "a") + line(50, "b") + line(171, "c") + line(49, "d") + line(172, "e"),
			accesslog.Options{SkipLate: true}, "a@0 b@50 c@171 e@172", 1,
		},
		{
			"a shorter window", line(5, "a") + line(16, "b") + line(4, "c"),
			accesslog.Options{Window: 10 * time.Second}, "a@5 c@5* b@16", 1,
		},
		{
			"no window", line(1, "a") + line(0, "b") + line(2, "c"),
			accesslog.Options{Window: -1}, "a@1 b@1* c@2", 1,
		},
		{
			"a clock far ahead holds nobody up", line(0, "a") + line(1000000, "z") + line(1, "b") + line(2, "c"),
			accesslog.Options{}, "a@0 b@1 c@2 z@1000000", 0,
		},
		{
			"a full buffer delivers early", line(3, "a") + line(2, "b") + line(1, "c") + line(4, "d"),
			accesslog.Options{MaxBuffered: 2}, "b@2 c@2* a@3 d@4", 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := stdinOf(t, c.text, c.opts)
			if got := drain(t, r); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := r.Stats().Late; got != c.late {
				t.Errorf("%d late, want %d", got, c.late)
			}
		})
	}
}

func TestShuffledLinesComeOutSorted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	// Line i is at second i, and stands up to a minute away from its place.
	const n = 5000
	places := make([]int, n)
	for i := range places {
		places[i] = i*100 + random.IntN(6000)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return places[a] - places[b] })
	var text strings.Builder
	var want []string
	for i, second := range order {
		text.WriteString(line(second, "x"))
		want = append(want, fmt.Sprintf("x@%d", i))
	}
	r := stdinOf(t, text.String(), accesslog.Options{})
	if got := drain(t, r); got != strings.Join(want, " ") {
		t.Error("not in order")
	}
}

func TestFilesAreMergedByTime(t *testing.T) {
	newest := write(t, "access.log", line(4000, "e")+line(4001, "f"))
	older := write(t, "access.log.1", line(2000, "c")+line(3000, "d"))
	oldest := write(t, "access.log.2.gz", line(1, "a")+line(1000, "b"))
	r := open(t, []string{newest, older, oldest}, nil, accesslog.Options{MaxOpen: 1})
	if got, want := drain(t, r), "a@1 b@1000 c@2000 d@3000 e@4000 f@4001"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s := r.Stats()
	if s.BytesRead != s.BytesTotal || s.BytesTotal <= 0 {
		t.Errorf("read %d of %d bytes", s.BytesRead, s.BytesTotal)
	}
}

func TestSameTimesStandInTheOrderOfNames(t *testing.T) {
	b := write(t, "b", line(1, "b1")+line(2, "b2")+line(2, "b3"))
	a := write(t, "a", line(1, "a1")+line(2, "a2")+line(3, "a3"))
	r := open(t, []string{b, a}, nil, accesslog.Options{})
	if got, want := drain(t, r), "b1@1 a1@1 b2@2 b3@2 a2@2 a3@3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFileMayBeginUnsorted(t *testing.T) {
	// The second file is opened a window before its first line, in time for its
	// second.
	a := write(t, "a", line(0, "a1")+line(1, "a2")+line(100, "a3")+line(300, "a4"))
	b := write(t, "b", "garbage\n"+line(120, "b1")+line(2, "b2"))
	r := open(t, []string{a, b}, nil, accesslog.Options{})
	if got, want := drain(t, r), "a1@0 a2@1 b2@2 a3@100 b1@120 a4@300"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s := r.Stats(); s.Skipped != 1 || s.Lines != 7 || s.Examples[0].File != b {
		t.Errorf("a line that was looked at early is not counted once: %+v", s)
	}
}

func TestAFileThatMayHoldTheSameTimeIsOpened(t *testing.T) {
	// The second line of b is exactly a window older than its first.
	b := write(t, "b", line(120, "b1")+line(0, "b2"))
	a := write(t, "a", line(0, "a1"))
	r := open(t, []string{b, a}, nil, accesslog.Options{})
	if got, want := drain(t, r), "b2@0 a1@0 b1@120"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatStandsBeforeTheFirstLineIsNoPartOfIt(t *testing.T) {
	for _, before := range []string{"\ufeff", "\x00\x00\x00", " "} {
		for _, first := range []string{line(1, "a"), `{"time":"2026-05-01T00:00:01Z","ip":"192.0.2.1","method":"GET","path":"/a"}`} {
			r := stdinOf(t, before+first, accesslog.Options{})
			if rec, err := r.Next(); err != nil || rec.Client != "192.0.2.1" {
				t.Errorf("%q: got %+v, %v", before, rec, err)
			}
		}
	}
}

func TestStandardInputIsMergedToo(t *testing.T) {
	a := write(t, "a", line(1, "a1")+line(3, "a2"))
	r := open(t, []string{a, "-"}, strings.NewReader(line(0, "i1")+line(2, "i2")), accesslog.Options{})
	if got, want := drain(t, r), "i1@0 a1@1 i2@2 a2@3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if total := r.Stats().BytesTotal; total != -1 {
		t.Errorf("BytesTotal is %d although standard input has no size", total)
	}
}

func TestFilesWithoutRecordsDoNoHarm(t *testing.T) {
	empty := write(t, "empty", "")
	emptyZip := write(t, "empty.gz", "")
	garbage := write(t, "garbage", strings.Repeat("garbage\n", 20000))
	good := write(t, "good", line(1, "a"))
	r := open(t, []string{empty, good, garbage, emptyZip}, nil, accesslog.Options{MaxOpen: 1})
	if got := drain(t, r); got != "a@1" {
		t.Errorf("got %q", got)
	}
	if s := r.Stats(); s.Skipped != 20000 || s.Reasons[accesslog.NoTime] != 20000 || len(s.Examples) != 3 {
		t.Errorf("got %d skipped, %v, %d examples", s.Skipped, s.Reasons, len(s.Examples))
	}
}

func TestGzipIsFoundByItsBytes(t *testing.T) {
	// Two members, as `cat a.gz b.gz` makes them.
	both := append(zipped(t, line(1, "a")), zipped(t, line(2, "b"))...)
	for name, stdin := range map[string]io.Reader{
		"at once":      bytes.NewReader(both),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(both)),
	} {
		r := open(t, []string{"-"}, stdin, accesslog.Options{})
		if got := drain(t, r); got != "a@1 b@2" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	plain := write(t, "plain", line(1, "a"))
	if err := os.Rename(plain, plain+".gz"); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, open(t, []string{plain + ".gz"}, nil, accesslog.Options{})); got != "a@1" {
		t.Errorf("plain text named .gz: got %q", got)
	}
}

func TestDamagedGzipIsAnErrorThatNamesTheFile(t *testing.T) {
	text := strings.Repeat(line(1, "a"), 10000)
	whole := zipped(t, text)
	path := filepath.Join(t.TempDir(), "cut.gz")
	if err := os.WriteFile(path, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, []string{path}, nil, accesslog.Options{MaxBuffered: 10})
	for range 20000 {
		if _, err := r.Next(); err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "cut.gz") {
				t.Errorf("got %v", err)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("then %v", again)
			}
			return
		}
	}
	t.Error("a damaged file was read to an end")
}

func TestBrokenLinesAreCountedAndShown(t *testing.T) {
	long := strings.Repeat("x", 300000)
	text := "\ufeff" + line(1, "a") +
		"\r\n \t\n\n" +
		strings.TrimSuffix(line(2, "b"), "\n") + "\r\n" +
		"first\x1b[2J bad\n" +
		long + "\n" +
		line(3, strings.Repeat("y", 200)) +
		"\x00\x00\x00" + line(4, "c") +
		`{"time":` + "\n" +
		"192.0.2.1 - - [01/May/2026:00:00:00 +0000] no request\n" +
		strings.TrimSuffix(line(5, "d"), "\n")
	for name, stdin := range map[string]io.Reader{
		"at once":      strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"with the end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, []string{"-"}, stdin, accesslog.Options{MaxLine: 200})
			if got, want := drain(t, r), "a@1 b@2 c@4 d@5"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			s := r.Stats()
			if s.Lines != 12 || s.Empty != 3 || s.Records != 4 || s.Skipped != 5 || s.BytesRead != int64(len(text)) {
				t.Errorf("got %+v", s)
			}
			want := map[accesslog.Reason]int64{accesslog.TooLong: 2, accesslog.NoTime: 1, accesslog.BadJSON: 1, accesslog.NoRequest: 1}
			if !maps.Equal(s.Reasons, want) {
				t.Errorf("got %v, want %v", s.Reasons, want)
			}
			if e := s.Examples[0]; e.Line != 6 || e.File != "-" || e.Reason != accesslog.NoTime || e.Excerpt != `"first\x1b[2J bad"` {
				t.Errorf("got %+v", e)
			}
			for _, e := range s.Examples {
				if len(e.Excerpt) > 500 || strings.ContainsAny(e.Excerpt, "\n\x1b") {
					t.Errorf("line %d has the excerpt %q", e.Line, e.Excerpt)
				}
			}
		})
	}
}

func TestTheLongestLineIsReadWithAnyEnd(t *testing.T) {
	for _, size := range []int{100, 65535, 65536, 65537, 1 << 20} {
		for _, end := range []string{"\n", "\r\n", ""} {
			base := strings.TrimSuffix(line(1, "a"), "\n")
			fits := base + strings.Repeat(" ", size-len(base))
			r := stdinOf(t, fits+end, accesslog.Options{MaxLine: size})
			if got := drain(t, r); got != "a@1" {
				t.Errorf("%d bytes and %q: got %q", size, end, got)
			}
			r = stdinOf(t, fits+" "+end, accesslog.Options{MaxLine: size})
			if got := drain(t, r); got != "" || r.Stats().Reasons[accesslog.TooLong] != 1 {
				t.Errorf("%d bytes more and %q: got %q, %+v", size, end, got, r.Stats())
			}
		}
	}
}

func TestForcedFormatSkipsOthers(t *testing.T) {
	text := line(1, "a") + `{"time":"2026-05-01T00:00:02Z","method":"GET","path":"/b"}` + "\n" +
		`[2026-05-01T00:00:03.000Z] "GET /c HTTP/2" 200 - 0 5 1 1 "192.0.2.1" "-" "-" "h" "-"` + "\n"
	for format, want := range map[accesslog.Format]string{
		accesslog.Auto:     "a@1 b@2 c@3",
		accesslog.Combined: "a@1",
		accesslog.JSON:     "b@2",
		accesslog.Envoy:    "c@3",
	} {
		if got := drain(t, stdinOf(t, text, accesslog.Options{Format: format})); got != want {
			t.Errorf("%v: got %q, want %q", format, got, want)
		}
	}
}

func TestMoreFilesAtOnceThanMaxOpenIsAnError(t *testing.T) {
	a, b, c := write(t, "a", line(1, "a")), write(t, "b", line(1, "b")), write(t, "c", line(1, "c"))
	r := open(t, []string{a, b, c}, nil, accesslog.Options{MaxOpen: 2})
	if _, err := r.Next(); !errors.Is(err, accesslog.ErrMaxOpen) {
		t.Errorf("got %v", err)
	}
	r = open(t, []string{a, b, c}, nil, accesslog.Options{MaxOpen: 3})
	if got := drain(t, r); got != "a@1 b@1 c@1" {
		t.Errorf("got %q", got)
	}
}

func TestAFileReplacedMeanwhileIsAnError(t *testing.T) {
	a, b := write(t, "a", line(1, "a")), write(t, "b", line(1000, "b"))
	r := open(t, []string{a, b}, nil, accesslog.Options{})
	other := write(t, "b", line(2000, "other"))
	if err := os.Rename(other, b); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err == nil || err == io.EOF || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("got %v", err)
	}
}

func TestOpenTellsAllThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	good := write(t, "good", line(1, "a"))
	_, err := accesslog.Open([]string{missing, dir, good, good}, nil, accesslog.Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"missing", "directory", "named twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %q", err, want)
		}
	}
	for name, open := range map[string]func() (*accesslog.Reader, error){
		"no names": func() (*accesslog.Reader, error) { return accesslog.Open(nil, nil, accesslog.Options{}) },
		"no stdin": func() (*accesslog.Reader, error) { return accesslog.Open([]string{"-"}, nil, accesslog.Options{}) },
		"format": func() (*accesslog.Reader, error) {
			return accesslog.Open([]string{good}, nil, accesslog.Options{Format: 9})
		},
		"negative": func() (*accesslog.Reader, error) {
			return accesslog.Open([]string{good}, nil, accesslog.Options{MaxLine: -1})
		},
	} {
		if _, err := open(); err == nil || !strings.HasPrefix(err.Error(), "accesslog: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReadErrorsEndTheStream(t *testing.T) {
	broken := errors.New("cable pulled")
	stdin := io.MultiReader(strings.NewReader(line(1, "a")+line(2, "b")), iotest.ErrReader(broken))
	r := open(t, []string{"-"}, stdin, accesslog.Options{MaxBuffered: 1})
	var got []string
	for {
		rec, err := r.Next()
		if err != nil {
			if !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			break
		}
		got = append(got, rec.Path)
	}
	if !slices.Equal(got, []string{"/a", "/b"}) {
		t.Errorf("got %v", got)
	}
}

func TestNextAfterCloseIsAnError(t *testing.T) {
	r := stdinOf(t, line(1, "a")+line(2, "b"), accesslog.Options{})
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.Next(); err == nil || err == io.EOF {
		t.Errorf("got %v, %v", rec, err)
	}
}

func TestTextOutlivesTheRecord(t *testing.T) {
	var text strings.Builder
	for i := range 20000 {
		text.WriteString(line(i, fmt.Sprint(i)))
	}
	r := stdinOf(t, text.String(), accesslog.Options{Window: time.Second})
	var paths []string
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, rec.Path)
	}
	for i, path := range paths {
		if want := fmt.Sprintf("/%d", i); path != want {
			t.Fatalf("path %d became %q", i, path)
		}
	}
}

// TestWhatWasReadBeforeAnErrorIsDelivered: a damaged end of a file takes nothing away
// from its beginning, though records wait for their turn.
func TestWhatWasReadBeforeAnErrorIsDelivered(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 1000 {
		fmt.Fprintf(z, "192.0.2.1 - - [01/Mar/2026:12:00:%02d +0000] \"GET /%d HTTP/1.1\" 200 1 \"-\" \"-\"\n", i%60, i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"trailing.bin": packed.String() + "rubbish",
		"cut.bin":      packed.String()[:packed.Len()-6],
	} {
		r := open(t, []string{write(t, name, text)}, nil, accesslog.Options{})
		records := 0
		var err error
		for err == nil {
			if _, err = r.Next(); err == nil {
				records++
			}
		}
		if records != 1000 || err == io.EOF || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %d records, then %v", name, records, err)
		}
	}
}
