package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestHealthCheckPeriod(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		period time.Duration
		fails  bool
	}{
		"default":  {nil, 2 * time.Minute, false},
		"set":      {[]string{"--health-check-period=10s"}, 10 * time.Second, false},
		"off":      {[]string{"--health-check-period=0s"}, 0, false},
		"negative": {[]string{"--health-check-period=-1s"}, 0, true},
		"too fast": {[]string{"--health-check-period=1ms"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			checks := newOptions().health
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			checks.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if err := checks.Complete(); (err != nil) != test.fails || err == nil && checks.period != test.period {
				t.Errorf("period %s, error %v", checks.period, err)
			}
		})
	}
}
