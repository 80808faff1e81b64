package weirhttp

import (
	"context"
	"crypto/sha256"

	"github.com/weirhq/weir"
)

// Digest is what clients are sent as pk for a partition key: the first 8 bytes of
// its SHA-256. It is the same on every node and has no secret, so an operator can
// find the key that a client complains about by digesting candidates; and so can
// anybody who sees it, which hides short keys such as addresses from nobody. Only
// the client itself is sent it.
func Digest(key []byte) (pk [8]byte) {
	sum := sha256.Sum256(key)
	copy(pk[:], sum[:])
	return pk
}

// digest is the pk of service limit i of a decision.
type digest struct {
	i  int
	pk [8]byte
}

// PartitionKeys makes the answers carry pk, the [Digest] of the partition key each
// policy counted the request by. Keys are known during a decision only, so it is
// an observer: give it to the limiter, around your own or nil.
//
//	weir.Options[*weirhttp.Request]{Observer: weirhttp.PartitionKeys(metrics)}
func PartitionKeys(next weir.Observer[*Request]) weir.Observer[*Request] {
	return partitionKeys{next}
}

type partitionKeys struct{ next weir.Observer[*Request] }

// Decided notes the digests. An attempt of Wait replaces those of the one before.
func (p partitionKeys) Decided(ctx context.Context, r *Request, d *weir.Decision) {
	r.digests = r.digests[:0]
	for i := range d.Len() {
		if key := d.Key(i); len(key) > 0 { // without one all requests share a partition
			r.digests = append(r.digests, digest{i, Digest(key)})
		}
	}
	if p.next != nil {
		p.next.Decided(ctx, r, d)
	}
}

// StoreFailed passes the failure on.
func (p partitionKeys) StoreFailed(ctx context.Context, r *Request, err error) {
	if p.next != nil {
		p.next.StoreFailed(ctx, r, err)
	}
}

// pk is the digest of service limit i, nil if there is none.
func (r *Request) pk(i int) []byte {
	for n := range r.digests {
		if r.digests[n].i == i {
			return r.digests[n].pk[:]
		}
	}
	return nil
}
