package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/source"
)

func Example() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	save := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
	save("rules: []\n")

	file, err := source.NewFile(path, source.Options{
		Notify: func(e source.Event) { fmt.Println(e.Kind, e.Err) },
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = file.Run(ctx, func(_ context.Context, d source.Document) error {
		text := string(d.Parts[0].Data)
		fmt.Printf("%s: %q\n", filepath.Base(d.Parts[0].Name), text)
		switch text {
		case "rules: []\n":
			save("rulez: []\n")
		case "rulez: []\n":
			save("rules: [] # better\n")
			return errors.New("line 1: rulez is not a key; did you mean rules?")
		default:
			defer stop()
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// rules.yaml: "rules: []\n"
	// accepted <nil>
	// rules.yaml: "rulez: []\n"
	// rejected line 1: rulez is not a key; did you mean rules?
	// rules.yaml: "rules: [] # better\n"
	// accepted <nil>
	// context canceled
}

func ExampleStatic() {
	rules := source.Static{Name: "built in", Parts: []source.Part{{Name: "default.yaml", Data: []byte("rules: []\n")}}}
	err := rules.Run(context.Background(), func(_ context.Context, d source.Document) error {
		for _, p := range d.Parts {
			fmt.Printf("%s from %s: %s", p.Name, d.Name, p.Data)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// default.yaml from built in: rules: []
	// <nil>
}
