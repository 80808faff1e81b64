package weirgoredis_test

import (
	"errors"
	"os"
	"testing"

	"github.com/weirhq/weir/weirgoredis"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirredis/clienttest"
)

func open(t testing.TB, w clienttest.Where) weirredis.Client {
	t.Helper()
	c, err := weirgoredis.New(weirgoredis.Options{Addresses: w.Addresses, Username: w.Username, Password: w.Password,
		TLS: w.TLS, Database: w.Database, Master: w.Master, Cluster: w.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheClientKeepsEveryPromise(t *testing.T) { clienttest.Run(t, open) }

func TestStoresOnItKeepEveryPromise(t *testing.T) {
	clienttest.RunStore(t, open, os.DirFS("../testdata/decisions"))
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, o := range map[string]weirgoredis.Options{
		"no address":              {},
		"two servers":             {Addresses: []string{"a:1", "b:1"}},
		"a Cluster's Sentinels":   {Addresses: []string{"a:1"}, Cluster: true, Master: "m"},
		"a Cluster's database":    {Addresses: []string{"a:1"}, Cluster: true, Database: 1},
		"too many connections":    {Addresses: []string{"a:1"}, Connections: 1025},
		"fewer than none of them": {Addresses: []string{"a:1"}, Connections: -1},
	} {
		if _, err := weirgoredis.New(o); !errors.Is(err, weirgoredis.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
