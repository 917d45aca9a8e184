package house

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// linterConfig contains one depguard rule for each layer. The rule lists the folder of the layer,
// and the layers that it may import.
const linterConfig = ".golangci.yaml"

// testOnly is a layer that only tests may import. The table in the documentation omits it.
const testOnly = "internal/golden"

// layers returns, for each layer, the layers that it may import according to the linter's rules.
func (t tree) layers() map[string][]string {
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files, Allow []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(t.text(linterConfig)), &config); err != nil {
		return map[string][]string{err.Error(): nil}
	}
	layers := map[string][]string{}
	for name, rule := range config.Linters.Settings.Depguard.Rules {
		if len(rule.Files) == 0 || rule.Files[0] != "${base-path}/"+name+"/**" {
			continue
		}
		layers[name] = []string{}
		for _, allowed := range rule.Allow {
			to := strings.TrimPrefix(allowed, module+"/")
			if to != name && to != testOnly {
				layers[name] = append(layers[name], to)
			}
		}
		slices.Sort(layers[name])
	}
	return layers
}

// missingLayers finds folders with Go files that belong to no layer. There, the linter allows any
// import.
func missingLayers(t tree) []string {
	var problems []string
	layers := t.layers()
	for _, f := range t.goFiles() {
		dir := f.dir()
		for dir != "." && layers[dir] == nil {
			dir = path.Dir(dir)
		}
		if dir == "." && f.dir() != "." {
			problems = append(problems, f.dir()+" has no layer: add a depguard rule to "+linterConfig)
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}
