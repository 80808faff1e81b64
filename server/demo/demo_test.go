package demo_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/server/demo"
)

func ask(s *demo.Site, method, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader("{}")))
	return rec
}

func TestTheSiteAnswers(t *testing.T) {
	s := demo.New()
	for request, want := range map[string]int{
		"GET /": 200, "POST /api/auth/login": 401, "POST /api/users": 201, "GET /api/items": 200, "DELETE /api/x/y": 200, "GET /nothing": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		a := ask(s, method, path)
		if a.Code != want || strings.HasPrefix(path, "/api/") && !json.Valid(a.Body.Bytes()) {
			t.Errorf("%s: %d %s", request, a.Code, a.Body)
		}
	}
}

// TestThePageNeedsNothingElse: it loads nothing from anywhere, and every text is
// there in both languages.
func TestThePageNeedsNothingElse(t *testing.T) {
	page := ask(demo.New(), "GET", "/").Body.String()
	if m := regexp.MustCompile(`(?i)(src|href)=["']?(https?:)?//|@import|url\(`).FindString(page); m != "" {
		t.Errorf("the page loads %q", m)
	}
	en, zh, ok := strings.Cut(page[strings.Index(page, "en: {"):strings.Index(page, "let lang")], "zh: {")
	if !ok {
		t.Fatal("the texts are not found")
	}
	for _, m := range regexp.MustCompile(`data-t="(\w+)"|t\("(\w+)"\)`).FindAllStringSubmatch(page, -1) {
		if name := m[1] + m[2]; !strings.Contains(en, name+":") || !strings.Contains(zh, name+":") {
			t.Errorf("the text %s is not there in both languages", name)
		}
	}
}

func TestTheListIsLive(t *testing.T) {
	s := demo.New()
	server := httptest.NewServer(s)
	defer server.Close()
	for i := range 60 {
		s.Tell(demo.Decision{Path: fmt.Sprint(i)})
	}
	resp, err := http.Get(server.URL + "/decisions")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewScanner(resp.Body)
	next := func() (d demo.Decision) {
		t.Helper()
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &d); err != nil {
					t.Fatal(err)
				}
				return d
			}
		}
		t.Fatal("the list ended")
		return d
	}
	for i := 10; i < 60; i++ { // the last 50
		if d := next(); d.Path != fmt.Sprint(i) {
			t.Fatalf("decision %d is that of %s", i, d.Path)
		}
	}
	s.Tell(demo.Decision{Path: "</script>\n\ndata: {}"})
	if d := next(); d.Path != "</script>\n\ndata: {}" {
		t.Errorf("what a client wrote came as %q", d.Path)
	}
	s.Close()
	s.Close()
	for events.Scan() { // until the end
		if events.Text() != "" {
			t.Errorf("after the end came %q", events.Text())
		}
	}
}

func Example() {
	site := demo.New()
	defer site.Close()
	server := httptest.NewServer(site)
	defer server.Close()
	resp, err := http.Post(server.URL+"/api/auth/login", "application/json", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 401 Unauthorized
}
