package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// healthChecks contains the value of the flag for the checks of package health.
type healthChecks struct{ period time.Duration }

// AddFlags implements the extension library's Option. The current value is the default.
func (h *healthChecks) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&h.period, "health-check-period", h.period, "Time between two health checks of a Shoot's caches; 0s turns them off.")
}

// Complete implements the extension library's Option.
func (h *healthChecks) Complete() error {
	if h.period != 0 && h.period < time.Second {
		return fmt.Errorf("--health-check-period is %s, it must be at least 1s, or 0s", h.period)
	}
	return nil
}
