package main

import (
	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
)

func (c *cli) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a manifest, for editors",
		Long: `Prints the JSON Schema of a manifest. An editor with a YAML language server then completes keys and values, explains
them, and marks what is wrong, if the manifest begins with the line

  # yaml-language-server: $schema=dbjobs.schema.json

The schema is of draft 7, and describes the structure of a file. Only apply and diff check whether its rules are valid
and its keys fit together.`,
		Example: `  dbjobs schema > dbjobs.schema.json`,
		Args:    positional(),
		RunE: c.do(func(*cobra.Command, []string) error {
			text, err := manifest.Schema()
			if err != nil {
				return err
			}
			_, err = c.stdout.Write(append(text, '\n'))
			return err
		}),
	}
}
