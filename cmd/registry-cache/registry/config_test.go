package registry

import (
	"testing"

	"github.com/distribution/distribution/v3/configuration"
)

func TestStoreFolder(t *testing.T) {
	for name, test := range map[string]struct {
		storage configuration.Storage
		want    string
	}{
		"a folder":                   {configuration.Storage{"filesystem": {"rootdirectory": "/store"}}, "/store"},
		"a folder whose name counts": {configuration.Storage{"filesystem": {"rootdirectory": 1}}, "1"},
		"distribution's own":         {configuration.Storage{"filesystem": nil, "delete": {}}, defaultRoot},
		"no folder":                  {configuration.Storage{"inmemory": {"rootdirectory": "/store"}}, ""},
		"nothing":                    {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := storeFolder(&configuration.Configuration{Storage: test.storage}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
