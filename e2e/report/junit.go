package report

import (
	"encoding/xml"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// The elements of JUnit XML as CI systems read them: https://github.com/testmoapp/junitxml.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       float64         `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		Time    float64      `xml:"time,attr"`
		Failure *junitReason `xml:"failure"`
		Skipped *junitReason `xml:"skipped"`
		Output  string       `xml:"system-out,omitempty"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit renders junit.xml. The suite "testbed" contains a case for each phase, and the suite
// "scenarios" contains a case for each scenario. After a failed setup, the suite "testbed" also
// contains a failed case "setup".
func (r *Report) JUnit() ([]byte, error) {
	data, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{r.testbedSuite(), r.scenarioSuite()}}, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}

func (r *Report) testbedSuite() junitSuite {
	suite := junitSuite{Name: "testbed"}
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		suite.Properties = append(suite.Properties, junitProperty{Name: "version." + name, Value: r.Versions[name]})
	}
	suite.Properties = append(suite.Properties,
		junitProperty{Name: "peakMemoryBytes", Value: strconv.FormatUint(r.PeakMemoryBytes, 10)})
	for _, phase := range r.Phases {
		c := junitCase{Class: "testbed", Name: phase.Name, Time: phase.Seconds}
		switch phase.Result {
		case progress.ResultFailed:
			c.Failure = &junitReason{Message: "the phase failed"}
		case progress.ResultSkipped:
			c.Skipped = &junitReason{}
		}
		suite.add(c)
	}
	if r.SetupError != nil {
		suite.add(junitCase{Class: "testbed", Name: setup, Failure: reason(r.SetupError.Error())})
	}
	return suite
}

func (r *Report) scenarioSuite() junitSuite {
	suite := junitSuite{Name: "scenarios"}
	for _, s := range r.Scenarios {
		c := junitCase{Class: "scenarios", Name: s.Name, Time: tenths(s.Seconds), Output: strings.Join(s.Evidence, "\n")}
		switch s.Result {
		case Failed:
			c.Failure = reason(s.Reason)
		case Skipped:
			c.Skipped = reason(s.Reason)
		}
		suite.add(c)
	}
	return suite
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	s.Time = tenths(s.Time + c.Time)
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
}

func reason(text string) *junitReason {
	r := &junitReason{Message: firstLine(text)}
	if r.Message != strings.TrimSpace(text) {
		r.Text = text
	}
	return r
}

func tenths(seconds float64) float64 {
	return math.Round(seconds*10) / 10
}
