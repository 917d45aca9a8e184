package v1alpha3_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// TestReference compares docs/api.md with the doc comments of types.go. `make generate` updates it.
func TestReference(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../../docs/api.md", []byte(reference(file)))
}

const referenceHead = `<!-- Generated from api/v1alpha3/types.go by "make generate". Do not edit. -->

# API: registry.extensions.gardener.cloud/v1alpha3

A Shoot has a ` + "`RegistryConfig`" + ` in ` + "`spec.extensions[].providerConfig`" + `. The extension writes a
` + "`RegistryStatus`" + ` to ` + "`status.providerStatus`" + ` of the Extension resource. Unknown fields are rejected.
[usage.md](usage.md) explains the fields by example.
`

func reference(file *ast.File) string {
	var out strings.Builder
	out.WriteString(referenceHead)
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		spec := general.Specs[0].(*ast.TypeSpec)
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n| field | type | |\n| --- | --- | --- |\n", spec.Name.Name, strings.Join(linesOf(general.Doc), "\n"))
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if len(field.Names) > 0 {
				out.WriteString(row(field))
			}
		}
	}
	return out.String()
}

func row(field *ast.Field) string {
	tag, _ := strconv.Unquote(field.Tag.Value)
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	required := ""
	if !strings.Contains(options, "omitempty") {
		required = "Required. "
	}
	text := strings.ReplaceAll(required+strings.Join(linesOf(field.Doc), " "), "|", `\|`)
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, typeText(field.Type), text)
}

// typeText returns the YAML type of a field. A type of this package becomes a link to its section.
func typeText(expression ast.Expr) string {
	switch text := strings.TrimPrefix(types.ExprString(expression), "*"); text {
	case "string":
		return "string"
	case "bool":
		return "boolean"
	case "resource.Quantity":
		return "quantity"
	case "metav1.Duration":
		return "duration"
	default:
		name, isList := strings.CutPrefix(text, "[]")
		link := fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
		if isList {
			return "list of " + link
		}
		return link
	}
}

// linesOf returns the lines of a doc comment, without markers such as +optional.
func linesOf(comment *ast.CommentGroup) []string {
	// Unescaped angle brackets would be HTML.
	escape := strings.NewReplacer("<", "&lt;", ">", "&gt;")
	var lines []string
	for line := range strings.Lines(comment.Text()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, escape.Replace(line))
		}
	}
	return lines
}
