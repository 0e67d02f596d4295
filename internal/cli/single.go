package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What is wrong with a value that the flag itself would take.
var (
	errTwice = errors.New("is given twice, with different values")
	errEmpty = errors.New("may not be empty")
)

// singleValue is the value of a flag that holds one. A second one that differs is
// refused, because nobody can know which was meant, and so is an empty one: it is
// most often a variable of a shell that is not set.
type singleValue struct {
	pflag.Value
	given bool
}

func (v *singleValue) Set(s string) error {
	switch {
	case s == "":
		return errEmpty
	case !v.given:
		v.given = true
		return v.Value.Set(s)
	}
	before := v.String()
	if err := v.Value.Set(s); err != nil {
		return err
	}
	if v.String() != before {
		return errTwice
	}
	return nil
}

// singleValues makes a singleValue of every flag that is not a list.
func singleValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list {
			f.Value = &singleValue{Value: f.Value}
		}
	})
	for _, sub := range cmd.Commands() {
		singleValues(sub)
	}
}
