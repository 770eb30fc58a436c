package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/jobs"
)

// belongs are the flags that say what a job belongs to. To start they give it names; to
// list and stop they find it by them.
type belongs struct {
	where  *registryFlags
	task   string
	labels []string
}

var belongsNames = []string{"task", "label"}

func (f *belongs) add(cmd *cobra.Command, task, label string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.task, "task", "", task)
	flags.StringArrayVar(&f.labels, "label", nil, label)
}

func (f *belongs) addFilters(cmd *cobra.Command, verb string) {
	f.add(cmd, verb+" the jobs of the task `NAME`", verb+" the jobs with the label `NAME=value`; repeatable, a job must have all")
}

// filter makes a Filter of the flags. An empty name would mean any job, and so would
// an empty label: to stop them all is rarely meant.
func (f *belongs) filter(cmd *cobra.Command) (jobs.Filter, error) {
	filter := jobs.Filter{Task: f.task, Session: f.where.label()}
	if cmd.Flags().Changed("task") && f.task == "" {
		return filter, usagef(cmd, `--task "": wants a name; is a variable empty?`)
	}
	for _, label := range f.labels {
		name, value, _ := strings.Cut(label, "=")
		if name == "" || value == "" {
			return filter, usagef(cmd, "--label %q: wants NAME=value; is a variable empty?", label)
		}
		if filter.Labels == nil {
			filter.Labels = make(map[string]string)
		}
		filter.Labels[name] = value
	}
	return filter, nil
}

// oneOf refuses flags that say the same in different ways.
func oneOf(cmd *cobra.Command, names ...string) error {
	first := ""
	for _, name := range names {
		switch {
		case !cmd.Flags().Changed(name):
		case first != "":
			return usagef(cmd, "--%s and --%s do not go together", first, name)
		default:
			first = name
		}
	}
	return nil
}

// positive refuses numbers that were given, and are not above zero.
func positive(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		if text := flag.Value.String(); flag.Changed && (text == "0" || strings.HasPrefix(text, "-")) {
			return usagef(cmd, "--%s %s: wants a number above zero", name, text)
		}
	}
	return nil
}

// timed refuses times that were given, and are not above zero.
func timed(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if d, _ := cmd.Flags().GetDuration(name); d <= 0 && cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s %v: wants a time above zero, as in 90s", name, d)
		}
	}
	return nil
}

// matchable refuses what is no regular expression.
func matchable(cmd *cobra.Command, name string, patterns ...string) error {
	for _, pattern := range patterns {
		if pattern == "" {
			return usagef(cmd, `--%s "": wants a pattern, and . matches any line; is a variable empty?`, name)
		}
		if _, err := regexp.Compile(pattern); err != nil {
			return usagef(cmd, `--%s %q: %w; write \ before a character that is meant as it is`, name, pattern, err)
		}
	}
	return nil
}
