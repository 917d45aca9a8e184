package house

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	makeTarget   = regexp.MustCompile("(?:`|\\$ )make ([a-z][a-z0-9-]*)")
	notInAnchor  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// deadLinks finds links to missing files or headings.
func deadLinks(t tree) []string {
	var problems []string
	for _, f := range t {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, match := range markdownLink.FindAllStringSubmatch(f.text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			name, anchor, _ := strings.Cut(match[1], "#")
			target := f.path
			if name != "" {
				target = path.Join(f.dir(), name)
			}
			if !t.exists(target) || anchor != "" && !slices.Contains(t.anchors(target), anchor) {
				problems = append(problems, fmt.Sprintf("%s: broken link to %s", f.path, match[1]))
			}
		}
	}
	return problems
}

// architecture is the document with the table of layers.
const architecture = "docs/architecture.md"

// layerTable compares the table of layers in the documentation with the rules of the linter.
func layerTable(t tree) []string {
	rows := map[string]string{}
	for line := range strings.Lines(t.text(architecture)) {
		cells := strings.Split(line, "|")
		if layer := strings.Trim(cell(cells, 1), "`"); layer != cell(cells, 1) {
			rows[layer] = cell(cells, 2)
		}
	}
	var problems []string
	layers := t.layers()
	for _, layer := range slices.Sorted(maps.Keys(layers)) {
		want := "none"
		if imports := layers[layer]; len(imports) > 0 {
			want = "`" + strings.Join(imports, "`, `") + "`"
		}
		if layer != "" && rows[layer] != want {
			problems = append(problems, fmt.Sprintf("%s: layer %s may import %q, but %q in "+linterConfig, architecture, layer, rows[layer], want))
		}
	}
	return problems
}

// cell returns the i-th cell of a row, or "" if the row is shorter.
func cell(cells []string, i int) string {
	if i >= len(cells) {
		return ""
	}
	return strings.TrimSpace(cells[i])
}

// packageMaps maps a file to the prefix of the folders that the file must name.
var packageMaps = map[string]string{architecture: "", "kind/doc.go": "kind/"}

// unnamedPackages finds folders that a file in packageMaps must name, but does not name.
func unnamedPackages(t tree) []string {
	var problems []string
	for document, prefix := range packageMaps {
		for dir, files := range t.packages() {
			below, ok := strings.CutPrefix(dir, prefix)
			first, _, _ := strings.Cut(below, "/")
			if !ok || dir == "." || first == "" || files[0].nested {
				continue
			}
			if named := regexp.MustCompile(`\b` + regexp.QuoteMeta(first) + `\b`); !named.MatchString(t.text(document)) {
				problems = append(problems, fmt.Sprintf("%s does not name %s", document, prefix+first))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// unknownTargets finds make targets in the documentation that the Makefile does not define.
func unknownTargets(t tree) []string {
	var problems []string
	for _, f := range t {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, match := range makeTarget.FindAllStringSubmatch(f.text, -1) {
			if !strings.Contains("\n"+t.text("Makefile"), "\n"+match[1]+":") {
				problems = append(problems, fmt.Sprintf("%s: unknown target: make %s", f.path, match[1]))
			}
		}
	}
	return problems
}

// index is the document that links to all other documents.
const index = "docs/README.md"

// unlistedDocuments finds documents to which the index does not link.
func unlistedDocuments(t tree) []string {
	var problems []string
	for _, f := range t {
		name, below := strings.CutPrefix(f.path, "docs/")
		if below && path.Ext(name) == ".md" && f.path != index && !strings.Contains(t.text(index), "]("+name+")") {
			problems = append(problems, fmt.Sprintf("%s has no link to %s", index, name))
		}
	}
	return problems
}

// metricsPage is the document with every metric of this repository.
const metricsPage = "docs/observability.md"

var (
	metricInCode = regexp.MustCompile(`(?:Name: +|NewDesc\(|counter\()"(registry_[a-z_]+)"`)
	metricInPage = regexp.MustCompile("`(registry_cache_extension_[a-z_]+)")
)

// undocumentedMetrics compares the metrics in the code with those in the documentation. Metrics of
// libraries are ignored.
func undocumentedMetrics(t tree) []string {
	var made, problems []string
	for _, f := range t.goFiles() {
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, match := range metricInCode.FindAllStringSubmatch(f.text, -1) {
			made = append(made, match[1])
			if !strings.Contains(t.text(metricsPage), "`"+match[1]) {
				problems = append(problems, fmt.Sprintf("%s does not name %s of %s", metricsPage, match[1], f.path))
			}
		}
	}
	for _, match := range metricInPage.FindAllStringSubmatch(t.text(metricsPage), -1) {
		if !slices.Contains(made, match[1]) {
			problems = append(problems, fmt.Sprintf("%s: unknown metric %s", metricsPage, match[1]))
		}
	}
	return problems
}

// differences is the page that compares this extension with the original.
const differences = "docs/differences.md"

var quoted = regexp.MustCompile("`([^`]+)`")

// unprovenRows finds tables of differences whose column for the original is not marked as read, and
// rows that neither name a scenario or test that runs this extension nor are marked as read.
func unprovenRows(t tree) []string {
	var code strings.Builder
	for _, f := range t.goFiles() {
		if strings.HasSuffix(f.path, "_test.go") {
			code.WriteString(f.text)
		}
	}
	runs := func(name string) bool {
		return strings.Contains(code.String(), "rig.New(\""+name+"\"") || strings.Contains(code.String(), "\nfunc "+name+"(t *testing.T)")
	}
	var problems []string
	for line := range strings.Lines(t.text(differences)) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		row, original, proof := cell(cells, 1), cell(cells, 2), cell(cells, len(cells)-2)
		names := quoted.FindAllStringSubmatch(proof, -1)
		switch {
		case strings.HasPrefix(original, "original"): // the head of a table
			if original != "original (read)" || proof != "run by" {
				problems = append(problems, fmt.Sprintf("%s: columns %q and %q", differences, original, proof))
			}
		case len(names) == 0 && proof != "read":
			problems = append(problems, fmt.Sprintf("%s: nothing runs row %q", differences, row))
		}
		for _, name := range names {
			if !runs(name[1]) {
				problems = append(problems, fmt.Sprintf("%s: unknown scenario or test %s in row %q", differences, name[1], row))
			}
		}
	}
	return problems
}

// exists reports whether the path is a file or a folder that contains files.
func (t tree) exists(name string) bool {
	return slices.ContainsFunc(t, func(f file) bool { return f.path == name || strings.HasPrefix(f.path, name+"/") })
}

// text returns the content of a file, or "" if the file does not exist.
func (t tree) text(name string) string {
	for _, f := range t {
		if f.path == name {
			return f.text
		}
	}
	return ""
}

// anchors returns the anchors of the headings of a Markdown file, as GitHub generates them.
func (t tree) anchors(name string) []string {
	var anchors []string
	for line := range strings.Lines(t.text(name)) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
		}
	}
	return anchors
}
