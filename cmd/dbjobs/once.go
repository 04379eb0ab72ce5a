package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onceFlag is a flag with one value. If it is given twice, the second value would silently replace
// the first; that is an error instead. The error does not quote the values: they may be URLs with
// passwords.
type onceFlag struct {
	pflag.Value
	given bool
}

func (o *onceFlag) Set(s string) error {
	if o.given {
		return errors.New("it was given twice; give it once")
	}
	o.given = true
	return o.Value.Set(s)
}

// once lets each flag of the command and its subcommands be given only once, unless the flag collects
// values.
func once(cmd *cobra.Command) {
	wrap := func(f *pflag.Flag) {
		switch v := f.Value.(type) {
		case *onceFlag, pflag.SliceValue:
			return
		case interface{ several() bool }:
			if v.several() {
				return
			}
		}
		f.Value = &onceFlag{Value: f.Value}
	}
	cmd.Flags().VisitAll(wrap)
	cmd.PersistentFlags().VisitAll(wrap)
	for _, sub := range cmd.Commands() {
		once(sub)
	}
}
