// Renders a chart without Helm: Go's templates, sprig's functions and sigs.k8s.io/yaml, which are what Helm renders with, and the few
// functions that Helm adds to them. Only what the chart here uses: no subcharts, hooks, `lookup`, `tpl` or `.Files`.
//
//	render CHART RELEASE NAMESPACE [VALUES...]
//
// Prints the manifests, file by file in the order of their names. A fault is one line on standard error, and exit 1.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func main() {
	out, err := render(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	fmt.Print(out)
}

func render(chart, release, namespace string, files []string) (string, error) {
	meta := object{}
	if err := read(filepath.Join(chart, "Chart.yaml"), &meta); err != nil {
		return "", err
	}
	values := object{}
	for _, file := range append([]string{filepath.Join(chart, "values.yaml")}, files...) {
		more := object{}
		if err := read(file, &more); err != nil {
			return "", err
		}
		merge(values, more)
	}
	facts := object{}
	for name, value := range meta {
		facts[strings.ToUpper(name[:1])+name[1:]] = value
	}

	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if text, ok := value.(string); value == nil || (ok && text == "") {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	functions["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	all.Funcs(functions)

	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return "", err
	}
	sort.Strings(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if _, err := all.New(nameOf(meta, path)).Parse(string(text)); err != nil {
			return "", err
		}
	}

	var out strings.Builder
	for _, path := range paths {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		data := object{
			"Values":   values,
			"Chart":    facts,
			"Release":  object{"Name": release, "Namespace": namespace, "Service": "Helm"},
			"Template": object{"Name": nameOf(meta, path), "BasePath": fmt.Sprint(meta["name"], "/templates")},
		}
		var one bytes.Buffer
		if err := all.ExecuteTemplate(&one, nameOf(meta, path), data); err != nil {
			return "", err
		}
		// Helm puts the zero of a missing value this way too.
		text := strings.TrimSpace(strings.ReplaceAll(one.String(), "<no value>", ""))
		for _, manifest := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
			if strings.TrimSpace(manifest) != "" {
				fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", nameOf(meta, path), strings.TrimSpace(manifest))
			}
		}
	}
	return out.String(), nil
}

func nameOf(meta object, path string) string {
	return fmt.Sprint(meta["name"], "/templates/", filepath.Base(path))
}

func read(path string, into *object) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// merge lays one set of values over another, as Helm does: objects are merged, anything else replaces, and null takes away.
func merge(base, over object) {
	for name, value := range over {
		inner, isObject := value.(object)
		before, wasObject := base[name].(object)
		switch {
		case value == nil:
			delete(base, name)
		case isObject && wasObject:
			merge(before, inner)
		default:
			base[name] = value
		}
	}
}
