package jobs

import (
	"errors"
	"io/fs"
	"slices"
)

// Filter says which jobs are meant. The zero value of a field means any. To StopAll,
// the zero Filter means nothing, unless All is set: a name that was left empty by
// mistake is not to stop everything.
type Filter struct {
	All bool `json:"all,omitempty"`

	Task    string            `json:"task,omitempty"`
	Session string            `json:"session,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"` // a job must have all of these
	States  []State           `json:"states,omitempty"`
}

var errNoFilter = errors.New("the filter names nothing: is a name empty?")

// empty reports whether the filter names nothing, and does not mean to.
func (f Filter) empty() bool {
	return !f.All && f.Task == "" && f.Session == "" && len(f.Labels) == 0 && len(f.States) == 0
}

func (f Filter) has(s stored) bool {
	for name, value := range f.Labels {
		if v, ok := s.Labels[name]; !ok || v != value {
			return false
		}
	}
	return (f.Task == "" || f.Task == s.Task) && (f.Session == "" || f.Session == s.Session)
}

// List returns the jobs that the filter means, the oldest first. It does not count
// as having seen the end of one: see [Completed].
func (r *Registry) List(filter Filter) ([]Job, error) {
	if err := r.refusal(); err != nil {
		return nil, &Error{Op: "list", Err: err}
	}
	var list []Job
	for _, j := range r.all() {
		if !filter.has(j.spec) {
			continue
		}
		f, err := j.settled()
		if err = j.unreadable(err); errors.Is(err, ErrNotFound) {
			continue // It was forgotten meanwhile.
		} else if errors.Is(err, fs.ErrInvalid) {
			r.opts.Logger.Warn("limpet: a job is damaged, and not listed", "job", j.spec.ID, "err", err)
			continue
		} else if err != nil {
			return nil, &Error{Op: "list", ID: j.spec.ID, Err: err} // Fewer than there are would be taken for all.
		}
		if job := r.present(j, &f); len(filter.States) == 0 || slices.Contains(filter.States, job.State) {
			list = append(list, job)
		}
	}
	return list, nil
}

// Get returns one job. As List, it does not count as having seen its end.
func (r *Registry) Get(id string) (Job, error) {
	_, job, err := r.get("get", id)
	return job, err
}

// get finds a job, and how it is.
func (r *Registry) get(op, id string) (*job, Job, error) {
	j, f, err := r.open(op, id)
	if err != nil {
		return nil, Job{}, err
	}
	return j, r.present(j, &f), nil
}

// open finds a job, and reads its files.
func (r *Registry) open(op, id string) (*job, files, error) {
	j, err := r.find(op, id)
	if err != nil {
		return nil, files{}, err
	}
	f, err := j.settled()
	if err != nil {
		return nil, files{}, &Error{Op: op, ID: id, Err: j.unreadable(err)}
	}
	return j, f, nil
}

// Active returns how many jobs of the filter have not finished, or have left something
// running. An idle session is not to be ended while it has some.
func (r *Registry) Active(filter Filter) (int, error) {
	filter.States = nil
	jobs, err := r.List(filter)
	n := 0
	for _, job := range jobs {
		if !job.State.Finished() || job.Leftover {
			n++
		}
	}
	return n, err
}
