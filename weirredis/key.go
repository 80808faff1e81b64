package weirredis

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
)

// A key of Redis is
//
//	weir:{0123456789abcdefghijkl}0123456789a
//
// with the prefix, 128 bits of the SHA-256 of the partition key, and 64 bits of that
// of the policy's ID and the version of the states' format. So its length is bounded, it
// has no text of a client in it, and no braces but ours, which make all rules of one
// identity lie in one slot of a Cluster. A version of Weir that wrote states in another
// way would name them otherwise, and never misread these.
const stateVersion = "1"

// namer makes the names of keys; an empty prefix is "weir".
type namer struct {
	head     string
	policies sync.Map // policy ID → its part of a key
}

func newNamer(prefix string) *namer {
	if prefix == "" {
		prefix = "weir"
	}
	// A brace of the prefix would be the hash tag in place of the identity.
	return &namer{head: strings.NewReplacer("{", "(", "}", ")").Replace(prefix) + ":{"}
}

// tagLen is the length of the part that selects the slot.
const tagLen, policyLen = 22, 11

// name is the key of a partition of a policy.
func (n *namer) name(policyID string, partition []byte) string {
	var buf [128]byte
	name := append(buf[:0], n.head...)
	sum := sha256.Sum256(partition)
	name = base64.RawURLEncoding.AppendEncode(name, sum[:16])
	name = append(name, '}')
	return string(append(name, n.policy(policyID)...))
}

// policy is the last part of the keys of a policy. IDs come from rules, so there are
// only as many as people write.
func (n *namer) policy(id string) string {
	if part, ok := n.policies.Load(id); ok {
		return part.(string)
	}
	sum := sha256.Sum256([]byte(stateVersion + "\x00" + id))
	part := base64.RawURLEncoding.EncodeToString(sum[:8])
	n.policies.Store(id, part)
	return part
}

// tag is what selects the slot of a key.
func (n *namer) tag(key string) string { return key[len(n.head) : len(n.head)+tagLen] }
