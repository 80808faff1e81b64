package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			version, revision := "(devel)", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
				for _, set := range info.Settings {
					if set.Key == "vcs.revision" {
						revision = " " + set.Value[:min(12, len(set.Value))]
					}
				}
			}
			fmt.Fprintf(s.Out, "weir %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
