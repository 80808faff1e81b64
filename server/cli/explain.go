package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/daemon"
	"github.com/weirhq/weir/weirhttp"
)

// explanation is what is printed as JSON. Windows are written as in rules ("1m",
// "1m30s"), and burst is what can be taken at once, whatever the algorithm.
type explanation struct {
	ClientIP string          `json:"client_ip"`
	Rules    []explainedRule `json:"rules"`
}

type explainedRule struct {
	Name    string           `json:"name"`
	Matched bool             `json:"matched"`
	Why     string           `json:"why"`
	Key     string           `json:"key"`
	Limits  []explainedLimit `json:"limits"`
	Mode    string           `json:"mode"`

	bounds []string
}

type explainedLimit struct {
	Quota     int64  `json:"quota"`
	Window    string `json:"window"`
	Burst     int64  `json:"burst"`
	Algorithm string `json:"algorithm"`
}

func newExplain(s Streams) *cobra.Command {
	var file, method, address, peer, format string
	var fields []string
	c := &cobra.Command{
		Use:   "explain --rules FILE --url URL --peer ADDRESS",
		Short: "Say which rules apply to a request, and why",
		Long: `Explain what the rules of a file make of one request: who the client is, which
rules apply and why, by what key it is counted and how much that key may take.
Nothing is counted.

The client is found as the file's client_ip says; without that section no proxy
is trusted, and the peer is the client.`,
		Example: text(`
			weir explain --rules weir.yaml --method POST --url http://host/api/auth/login --peer 203.0.113.9
			weir explain --rules weir.yaml --url http://host/ --peer 10.0.0.1 --header 'X-Forwarded-For: 203.0.113.9' --format json`),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case file == "":
				return required(c, "rules", "the file of rules, or a configuration")
			case address == "":
				return required(c, "url", "the URL of the request, such as http://localhost/api/auth/login")
			case peer == "":
				return required(c, "peer", "the address that the connection comes from, such as 203.0.113.9")
			case format != "text" && format != "json":
				return &usageError{fmt.Errorf("--format %q is neither text nor json", format), c}
			}
			r, err := request(method, address, peer, fields)
			if err != nil {
				return &usageError{err, c}
			}
			e, err := explain(c, file, r)
			if err != nil {
				return err
			}
			if format == "json" {
				out := json.NewEncoder(s.Out)
				out.SetEscapeHTML(false)
				out.SetIndent("", "  ")
				return out.Encode(e)
			}
			return e.print(s.Out)
		},
	}
	f := c.Flags()
	f.StringVar(&file, "rules", "", "the `FILE` of rules, or a configuration")
	f.StringVar(&method, "method", "GET", "the `METHOD` of the request")
	f.StringVar(&address, "url", "", "the `URL` of the request")
	f.StringVar(&peer, "peer", "", "the `ADDRESS` that the connection comes from")
	f.StringArrayVar(&fields, "header", nil, "a header `'NAME: VALUE'`; may be given several times")
	f.StringVar(&format, "format", "text", "text or json")
	return c
}

// request builds the request that is asked about, as a server would see it.
func request(method, address, peer string, fields []string) (*http.Request, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url %.200q is not a URL; write for example http://localhost/api/auth/login", address)
	}
	from, ok := clientip.ParsePeer(peer)
	if !ok {
		return nil, fmt.Errorf("--peer %.200q is not an address; write for example 203.0.113.9", peer)
	}
	r, err := http.NewRequest(strings.ToUpper(method), address, nil)
	if err != nil {
		return nil, fmt.Errorf("--method %.200q: %w", method, err)
	}
	r.RemoteAddr = from.String()
	for _, f := range fields {
		name, value, ok := strings.Cut(f, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("--header %.200q is not a header; write 'Name: value'", f)
		}
		if value = strings.TrimSpace(value); http.CanonicalHeaderKey(name) == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return r, nil
}

func explain(c *cobra.Command, file string, r *http.Request) (*explanation, error) {
	conf, set, err := daemon.Load(c.Context(), file)
	if err != nil {
		return nil, err
	}
	program, err := rules.Compile(set, weirhttp.Binding())
	if err != nil {
		return nil, err
	}
	resolver, err := conf.ClientIP.Resolver()
	if err != nil {
		return nil, err
	}
	q, err := weirhttp.NewRequest(r, resolver)
	if err != nil {
		return nil, fmt.Errorf("the gateway answers 400 before it asks any rule: %w", err)
	}
	e := &explanation{ClientIP: q.Client.String(), Rules: []explainedRule{}}
	for i, x := range program.Explain(q) {
		rule := explainedRule{Name: x.Rule, Matched: x.Applies, Why: x.Why, Key: x.Key, Mode: x.Mode,
			Limits: []explainedLimit{}, bounds: x.Bounds}
		for _, w := range program.Ruleset.Rules[i].Limits {
			rule.Limits = append(rule.Limits, explainedLimit{Quota: w.Quota, Window: rules.FormatWindow(w.Window),
				Burst: w.Capacity(), Algorithm: w.Algorithm.String()})
		}
		e.Rules = append(e.Rules, rule)
	}
	return e, nil
}

// print writes the explanation for people.
func (e *explanation) print(w io.Writer) error {
	p := newPaint(w)
	fmt.Fprintf(w, "client %s\n", p.bold(e.ClientIP))
	for _, r := range e.Rules {
		mark := p.faint("- ")
		if r.Matched {
			mark = p.good("+ ")
		}
		fmt.Fprintf(w, "%s%s (%s): %s\n", mark, p.bold(r.Name), r.Mode, r.Why)
		if !r.Matched {
			continue
		}
		if r.Key != "" {
			fmt.Fprintf(w, "    key    %s\n", r.Key)
		}
		for i, l := range r.Limits {
			fmt.Fprintf(w, "    limit  %d/%s, burst %d, %s: %s\n", l.Quota, l.Window, l.Burst, l.Algorithm, r.bounds[i])
		}
		if len(r.Limits) == 0 {
			fmt.Fprintln(w, "    limit  none")
		}
	}
	return nil
}
