package fieldbugs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// script is what a bug runs, as lines for bash that work on any testbed: names that only one run
// has, of images, volumes and nodes, are variables.
type script struct {
	lines []*line
	names []binding
	// loop is where the lines begin that are run again and again: each of them is typed once. It is 0
	// where nothing is repeated.
	loop int
}

// line is a command line of `testbed`, or a note.
type line struct {
	text string
	// variable takes what it answers; empty if no later line needs that.
	variable string
	// image is the number of the image that it pushes; 0 if it is no push.
	image int
	// digest and parts say that later lines need the digest of the image, or those of its parts.
	digest, parts bool
}

// binding is what a value of this run is called. use, if there is one, is called when a line needs
// it.
type binding struct {
	value, text string
	use         func()
}

// commands are the lines for a shell.
func (s *script) commands() []string {
	var all []string
	for _, l := range s.lines {
		all = append(all, l.commands()...)
	}
	return all
}

func (l *line) commands() []string {
	switch {
	case l.digest || l.parts:
		return l.pushWithDigests()
	case l.variable != "":
		return []string{l.variable + "=$(" + l.text + ")"}
	}
	return []string{l.text}
}

// pushWithDigests needs the answer as JSON, and jq to read it.
func (l *line) pushWithDigests() []string {
	answer := numbered("pushed", l.image)
	from := ` <<<"$` + answer + `")`
	all := []string{answer + "=$(" + l.text + " --json)", l.variable + "=$(jq -r .reference" + from}
	if l.digest {
		all = append(all, numbered("digest", l.image)+"=$(jq -r .digest"+from)
	}
	if l.parts {
		all = append(all, numbered("parts", l.image)+`=($(jq -r '.objects[].digest | ltrimstr("sha256:")'`+from+")")
	}
	return all
}

// add appends a line, unless it is the last one, or there already since the loop began.
func (s *script) add(added *line) {
	from := max(len(s.lines)-1, 0)
	if s.loop > 0 {
		from = s.loop
	}
	same := func(l *line) bool { return l.text == added.text && l.variable == added.variable }
	if slices.ContainsFunc(s.lines[from:], same) {
		return
	}
	s.lines = append(s.lines, added)
}

// note appends what is no command line.
func (s *script) note(text string) { s.add(&line{text: "# " + s.named(text)}) }

// run appends a command line.
func (s *script) run(args []string) { s.add(&line{text: s.commandLine(args)}) }

// push appends the push of an image, which later lines know as $image, $image2 and so on.
func (s *script) push(args []string) *line {
	images := 1
	for _, l := range s.lines {
		images = max(images, l.image+1)
	}
	pushed := &line{text: s.commandLine(args), image: images, variable: numbered("image", images)}
	s.lines = append(s.lines, pushed)
	return pushed
}

// pushed tells which image the line has pushed.
func (s *script) pushed(by *line, img pull.Pushed) {
	if img.Reference == "" {
		return
	}
	repository := img.Reference[:max(strings.LastIndex(img.Reference, ":"), 0)]
	s.bind(img.Reference, "${"+by.variable+"}", nil)
	s.bind(repository, "${"+by.variable+"%:*}", nil)
	if _, path, ok := strings.Cut(img.Reference, "/"); ok {
		s.bind(path, "${"+by.variable+"#*/}", nil)
	}
	s.bind(img.Digest, "${"+numbered("digest", by.image)+"}", func() { by.digest = true })
	for i, object := range img.Objects {
		part := fmt.Sprintf("${%s[%d]", numbered("parts", by.image), i)
		hex := strings.TrimPrefix(object.Digest, "sha256:")
		if len(hex) > 2 {
			s.bind(hex[:2]+"/"+hex, part+":0:2}/"+part+"}", func() { by.parts = true })
		}
		s.bind(hex, part+"}", func() { by.parts = true })
	}
}

// ask appends a command line whose answer later lines need. The variable is $name, $name2 and so
// on.
func (s *script) ask(name string, args []string) (variable string) {
	text := s.commandLine(args)
	count := 1
	for _, l := range s.lines {
		if l.variable == "" || l.image > 0 {
			continue
		}
		if l.text == text && strings.TrimRight(l.variable, "0123456789") == name {
			return l.variable
		}
		if strings.TrimRight(l.variable, "0123456789") == name {
			count++
		}
	}
	variable = numbered(name, count)
	s.lines = append(s.lines, &line{text: text, variable: variable})
	return variable
}

// numbered are the names of variables: the first has no number.
func numbered(name string, number int) string {
	if number < 2 {
		return name
	}
	return fmt.Sprintf("%s%d", name, number)
}

// bind tells what a value is called from here on. The first name of a value stays.
func (s *script) bind(value, text string, use func()) {
	if value == "" || slices.ContainsFunc(s.names, func(b binding) bool { return b.value == value }) {
		return
	}
	s.names = append(s.names, binding{value, text, use})
	// What holds another value comes first.
	slices.SortStableFunc(s.names, func(a, b binding) int { return len(b.value) - len(a.value) })
}

// named is the text with the names of what is bound, as it stands between double quotes.
func (s *script) named(text string) string {
	for _, b := range s.names {
		before, after, found := strings.Cut(text, b.value)
		if !found {
			continue
		}
		if b.use != nil {
			b.use()
		}
		return s.named(before) + b.text + s.named(after)
	}
	return text
}

// Flags that only the program needs: people read the answer without them.
var forProgram = []string{"--json", "--output=json"}

// commandLine is what to type.
func (s *script) commandLine(args []string) string {
	words := []string{"testbed"}
	for _, arg := range args {
		if !slices.Contains(forProgram, arg) {
			words = append(words, s.word(arg))
		}
	}
	return strings.Join(words, " ")
}

// literal takes away what a shell makes of text between double quotes.
var literal = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// word is the argument as a shell takes it.
func (s *script) word(arg string) string {
	escaped := literal.Replace(arg)
	if named := s.named(escaped); named != escaped {
		return `"` + simple.ReplaceAllString(named, "$$$1") + `"`
	}
	return quoted(arg)
}

// simple is a variable that needs no braces.
var simple = regexp.MustCompile(`^\$\{(\w+)\}$`)

// again begins what is run until something is so, and returns what ends it.
func (s *script) again(until string) (end func()) {
	outer := s.loop
	s.note("until " + until + ":")
	s.loop = len(s.lines)
	return func() { s.loop = outer }
}

// mark returns what goes back to here: what was tried in vain is not to be typed.
func (s *script) mark() (reset func()) {
	lines, names := len(s.lines), slices.Clone(s.names)
	return func() { s.lines, s.names = s.lines[:lines], names }
}
