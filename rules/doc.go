// Package rules reads documents of limiting rules, says everything that is wrong
// with them, and compiles them into a weir.Ruleset for any kind of request.
//
// A document goes through these steps, each of which can be used alone:
//
//	ParseJSON, weiryaml.Parse   bytes → Node, a tree that knows its positions
//	Decode                      Node → Go structs, strictly
//	Document.Validate, Lint     what cannot work; what probably was not meant
//	Compile                     Document + Binding → Program, whose Ruleset runs
//	Diff                        what a reload would change
//
// A [Binding] says how to read one kind of request: an HTTP request, a line of an
// access log, an Envoy descriptor. The package does no I/O.
//
// [Decode] and [Schema] serve other configuration files as well: a struct with a
// field of type []Rule reads rules among its own keys, and Document{Rules: …} takes
// them from there with their positions.
package rules

//go:generate go test -run TestSchemaFile . -update
