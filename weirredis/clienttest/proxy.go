package clienttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// everything is for proxy.allow.
const everything = -1

// proxy passes on all that is sent to a server, and of its answers as many bytes as it
// is allowed to.
type proxy struct {
	ln net.Listener

	mu    sync.Mutex
	to    string
	left  int // bytes of answers that pass; negative: all
	conns []net.Conn
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, ln, to)
}

func serve(t testing.TB, ln net.Listener, to string) *proxy {
	p := &proxy{ln: ln, to: to, left: everything}
	t.Cleanup(func() { ln.Close(); p.cut() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go p.pass(conn)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

// allow lets so many more bytes of answers through, on all connections together.
func (p *proxy) allow(bytes int) {
	p.mu.Lock()
	p.left = bytes
	p.mu.Unlock()
}

// lead leads connections made from now on to another server.
func (p *proxy) lead(to string) {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) pass(in net.Conn) {
	defer in.Close()
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, in, out)
	p.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); out.Close() }() // either end may go at any time
	buf := make([]byte, 32<<10)
	for {
		n, err := out.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.left >= 0 {
			n = min(n, p.left)
			p.left -= n
		}
		p.mu.Unlock()
		if n == 0 {
			continue
		}
		if _, err := in.Write(buf[:n]); err != nil {
			return
		}
	}
}

// encrypted: a server is reached by TLS, and one with a certificate of somebody else is
// not spoken to.
func encrypted(t *testing.T, open Open) {
	s := redistest.Single(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	known, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	p := serve(t, ln, s.Addr)
	pool := x509.NewCertPool()
	stranger := open(t, Where{Addresses: []string{p.addr()}, TLS: &tls.Config{RootCAs: pool}})
	t.Cleanup(stranger.Close)
	q := call(echo, nil, "x")
	within(t, stranger, plenty, q)
	wantUnknown(t, q, "a certificate that nobody vouches for")
	pool = x509.NewCertPool()
	pool.AddCert(known)
	c := open(t, Where{Addresses: []string{p.addr()}, TLS: &tls.Config{RootCAs: pool}})
	t.Cleanup(c.Close)
	wantOne(t, c, "x", "by TLS", echo, nil, "x")
}
