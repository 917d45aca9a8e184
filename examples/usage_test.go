package examples

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const usage = "../docs/usage.md"

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	fieldRow  = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	fieldName = regexp.MustCompile("`([^`]+)`")
)

// TestUsageListsEveryField: the table in docs/usage.md lists exactly the fields of the API.
func TestUsageListsEveryField(t *testing.T) {
	var documented []string
	for _, row := range fieldRow.FindAllStringSubmatch(read(t, usage), -1) {
		for _, name := range fieldName.FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, name[1])
		}
	}
	fields := fieldsOf(reflect.TypeFor[v1alpha3.RegistryCache](), "")
	slices.Sort(documented)
	slices.Sort(fields)
	if !slices.Equal(documented, fields) {
		t.Errorf("%s has the fields\n%q\nthe API has\n%q", usage, documented, fields)
	}
}

// fieldsOf returns the paths of all fields. If the type of a field is a struct of this API,
// fieldsOf returns the paths of the struct's fields instead.
func fieldsOf(of reflect.Type, prefix string) []string {
	var fields []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		inner := of.Field(i).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath() {
			fields = append(fields, fieldsOf(inner, prefix+name+".")...)
		} else {
			fields = append(fields, prefix+name)
		}
	}
	return fields
}

// TestUsageSnippets: every YAML block is valid, as a part of a Shoot or as entries of caches.
func TestUsageSnippets(t *testing.T) {
	blocks := yamlBlock.FindAllStringSubmatch(read(t, usage), -1)
	if len(blocks) < 8 {
		t.Fatalf("found only %d blocks", len(blocks))
	}
	for _, block := range blocks {
		text := block[1]
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "- "), "\n")
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(text, "- ") {
				text = "apiVersion: registry.extensions.gardener.cloud/v1alpha3\nkind: RegistryConfig\ncaches:\n" + text
			} else {
				text = providerConfig(t, text)
			}
			validConfig(t, []byte(text))
		})
	}
}

// providerConfig returns the providerConfig of the single extension in a part of a Shoot.
func providerConfig(t *testing.T, fragment string) string {
	t.Helper()
	var shoot struct {
		Spec struct {
			Extensions []struct {
				ProviderConfig map[string]any `json:"providerConfig"`
			} `json:"extensions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(fragment), &shoot); err != nil {
		t.Fatal(err)
	}
	if len(shoot.Spec.Extensions) != 1 {
		t.Fatalf("not a Shoot with one extension:\n%s", fragment)
	}
	config, err := yaml.Marshal(shoot.Spec.Extensions[0].ProviderConfig)
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
