package urlpath_test

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/urlpath"
)

func ExampleClean() {
	for _, escaped := range []string{"/api/login", "//api/x/%2e%2e/%6Cogin", "/api/%40alice/caf%c3%a9", "/api%2Flogin"} {
		clean, err := urlpath.Clean(escaped)
		if errors.Is(err, urlpath.ErrSlash) {
			fmt.Println(err) // the gateway answers 400
			continue
		}
		fmt.Println(clean, urlpath.Decode(clean))
	}
	// Output:
	// /api/login /api/login
	// /api/login /api/login
	// /api/%40alice/caf%C3%A9 /api/@alice/café
	// urlpath: escaped slash (separate segments with /) at byte 4 of "/api%2Flogin"
}
