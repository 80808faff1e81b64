// Package config reads the configuration file of weir serve: what is installed
// once (doors, store, whom to believe about clients) and the rules, or where they
// are.
//
// The file is strict, as rule documents are: an unknown key, a repeated one and a
// value of the wrong kind are problems with file, line, column and path, and all
// are reported at once.
//
//	gateway:
//	  listen: 127.0.0.1:8080
//	  routes:
//	    - match: /**                              # as the match of a rule; the first that fits
//	      upstreams: ["http://127.0.0.1:9000"]    # several take turns
//	  timeouts: {header: 10s, body: 1m, send: 1m, idle: 2m, connect: 5s, response: 1m, shutdown: 30s}
//	admin:     {listen: 127.0.0.1:6070}           # loopback only: it asks for no credential
//	client_ip: {trusted_proxies: [10.0.0.0/8], header: X-Forwarded-For, ipv6_prefix: 64}
//	store:     memory                             # or {memory: {max_keys: 1000000}}, or what nodes share:
//	                                              # {redis: {addresses: ["127.0.0.1:6379"], prefix: weir, timeout: 50ms}}
//	headers:   [ietf]                             # and x for X-RateLimit-*; [] for none
//	rules:     [...]                              # or rules_file: rules.yaml
//
// A door that is not named does not open. A document with nothing but rules is a
// configuration too, one without doors, so that the same file serves weir check
// and weir serve.
package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/weiryaml"
)

// A Config is a configuration without problems. It is not changed after Load.
type Config struct {
	// Gateway is the reverse proxy; nil if the file does not name it.
	Gateway *Gateway
	// Admin is the door for metrics, health and profiles; nil if the file does not
	// name it.
	Admin *Admin
	// ClientIP says whom to believe about the address of a client.
	ClientIP ClientIP
	// Store is where counters are kept.
	Store Store
	// Headers says which fields tell a client about its limits.
	Headers Headers
	// Rules are the rules in the file; nil if RulesFile says where they are.
	Rules *rules.Document
	// RulesFile is the file or directory of the rules, as a path that is relative to
	// the working directory or absolute; empty if the rules are in this file.
	RulesFile string

	tree *rules.Node
}

// file is the configuration as it is written.
type file struct {
	Gateway   *Gateway      `json:"gateway"`
	Admin     *Admin        `json:"admin"`
	ClientIP  ClientIP      `json:"client_ip"`
	Store     Store         `json:"store"`
	Headers   *Headers      `json:"headers"`
	Rules     *[]rules.Rule `json:"rules"`
	RulesFile *string       `json:"rules_file"`
	GRPC      unavailable   `json:"grpc"`
	Check     unavailable   `json:"check"`
}

// Load reads a configuration from the YAML or JSON of a file of that name. The
// Config is nil if there are problems.
func Load(name string, data []byte) (*Config, rules.Problems) {
	tree, wrong := weiryaml.Parse(name, data)
	problems := rules.Problems(wrong)
	if tree == nil {
		return nil, problems
	}
	var f file
	problems = append(problems, rules.Decode(tree, &f)...)
	c := &Config{Gateway: f.Gateway, Admin: f.Admin, ClientIP: f.ClientIP, Store: f.Store, tree: tree}
	c.Headers = Headers{IETF: true}
	if f.Headers != nil {
		c.Headers = *f.Headers
	}
	if f.Rules != nil {
		c.Rules = &rules.Document{Rules: *f.Rules}
		problems = append(problems, c.Rules.Validate()...)
	}
	switch {
	case f.Rules != nil && f.RulesFile != nil:
		problems = append(problems, tree.Get("rules_file").Problem("rules_file", "stands beside rules; keep one of the two"))
	case f.RulesFile != nil && *f.RulesFile == "":
		problems = append(problems, tree.Get("rules_file").Problem("rules_file", "is empty; name a file or a directory, relative to this one"))
	case f.RulesFile != nil:
		c.RulesFile = beside(name, *f.RulesFile)
	case tree.Get("rules") == nil && tree.Kind == rules.Map:
		problems = append(problems, tree.Problem("rules", "is missing; write the rules here, or where they are as rules_file"))
	}
	if r := c.Store.Redis; r != nil {
		for _, path := range r.paths() {
			if *path != "" {
				*path = beside(name, *path)
			}
		}
	}
	problems = append(problems, c.check()...)
	if problems.Err() != nil {
		return nil, sorted(problems)
	}
	return c, nil
}

// beside is a path that a file mentions, from where the reader stands.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// check finds what is wrong beyond the shape of single values.
func (c *Config) check() rules.Problems {
	var problems rules.Problems
	if c.Gateway != nil {
		problems = c.Gateway.check()
	}
	if _, err := c.ClientIP.Resolver(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") { // one for each thing wrong
			text := strings.TrimPrefix(line, "clientip: ")
			problems = append(problems, c.tree.Get("client_ip").Problem("client_ip", "%s", text))
		}
	}
	return problems
}

// Warn returns what is legal in the configuration and yet looks like a mistake,
// the rules' own warnings included.
func (c *Config) Warn() rules.Problems {
	var problems rules.Problems
	for _, text := range c.ClientIP.options().Warn() {
		p := c.tree.Get("client_ip").Problem("client_ip", "%s", text)
		p.Warning = true
		problems = append(problems, p)
	}
	if c.Rules != nil {
		problems = append(problems, c.Rules.Lint()...)
	}
	return sorted(problems)
}

// Installed compares two configurations and names, in order, the keys whose values
// differ and do not change in a running process: all but the rules.
func Installed(before, after *Config) (changed []string) {
	keys := make(map[string]bool)
	for _, c := range []*Config{before, after} {
		for _, e := range c.tree.Entries {
			keys[e.Key.Value] = true
		}
	}
	text := func(c *Config, key string) string {
		n := c.tree.Get(key)
		if n == nil {
			return ""
		}
		return string(n.AppendJSON(nil))
	}
	for key := range keys {
		if key != "rules" && text(before, key) != text(after, key) {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed
}

// LoadRules reads documents of rules that belong together, in order: the files of
// a directory, or one. The Document is nil if there are problems.
func LoadRules(parts ...Part) (*rules.Document, rules.Problems) {
	var all rules.Document
	var problems rules.Problems
	for _, p := range parts {
		tree, wrong := weiryaml.Parse(p.Name, p.Data)
		problems = append(problems, wrong...)
		if tree == nil {
			continue
		}
		var doc rules.Document
		problems = append(problems, rules.Decode(tree, &doc)...)
		all.Rules = append(all.Rules, doc.Rules...)
	}
	problems = append(problems, all.Validate()...)
	if problems.Err() != nil {
		return nil, sorted(problems)
	}
	return &all, nil
}

// A Part is a file of rules: its name, as problems show it, and what is in it.
type Part struct {
	Name string
	Data []byte
}

// Resolver finds clients as the configuration says.
func (c ClientIP) Resolver() (*clientip.Resolver, error) { return clientip.New(c.options()) }

// sorted orders problems as a reader meets them, file by file.
func sorted(ps rules.Problems) rules.Problems {
	slices.SortStableFunc(ps, func(a, b rules.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return ps
}

// unavailable is a section that a later version will read.
type unavailable struct{}

// DecodeNode says so.
func (unavailable) DecodeNode(path string, n *rules.Node) rules.Problems {
	return rules.Problems{n.Problem(path, "is not available in this version of weir; remove it")}
}

// oneOf lists words for a message.
func oneOf(words []string) string {
	return fmt.Sprintf("%s or %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
