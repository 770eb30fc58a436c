package approval

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/command"
)

// sight is what a Gate saw of its shell: with it a question was judged.
type sight struct {
	state   *command.LiveState // nil: not known
	changes int                // scripts that may have changed names, before it was looked
}

// see judges a question again by the state of the shell, where that can change the answer. It returns what it saw.
func (g *Gate) see(ctx context.Context, q *Question) (sight, error) {
	s := sight{changes: g.changed()}
	if q.Input != "" || q.Look == nil || q.Judgement.Verdict == Deny || g.contained() {
		return s, nil
	}
	if q.Judgement.Verdict == Allow {
		if s.changes == 0 {
			return s, nil
		}
		if s.state = g.last(s.changes); s.state != nil { // It is as it was: nothing that may change names ran since.
			if q.Judgement = g.judge(q.Script, q.Dir, s.state); q.Judgement.Verdict == Allow {
				return s, nil
			}
		}
	}
	if err := g.look(ctx, q, &s); err != nil || s.state == nil {
		return s, err
	}
	q.Judgement = g.judge(q.Script, q.Dir, s.state)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = s
	g.notes(newLive(s.state, &Options{}))
	for i, f := range q.Judgement.Findings {
		if since := g.origins[f.change]; since != "" {
			q.Judgement.Findings[i].Reason += ", since: " + since
		}
	}
	return s, nil
}

// mostLooks bounds how often a shell is looked at for one question.
const mostLooks = 3

// look sets what the shell has. A look waits for the scripts that run before it, which count as changes only when they begin: what it saw is behind all of
// them if none was counted meanwhile. If the count changes during each look, the state keeps the older count, and Pass.Holds returns false.
func (g *Gate) look(ctx context.Context, q *Question, s *sight) (err error) {
	for range mostLooks {
		s.changes = g.changed()
		if s.state, err = q.Look(ctx); err != nil || s.state == nil || g.changed() == s.changes {
			break
		}
	}
	return err
}

// last is what the shell had when it was looked at last, if that was after so many changes.
func (g *Gate) last(changes int) *command.LiveState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen.changes != changes {
		return nil
	}
	return g.seen.state
}

// notes takes down since when the shell has what it has.
func (g *Gate) notes(l *live) {
	origins := make(map[string]string)
	for _, c := range l.all() {
		since, known := g.origins[c.id]
		if !known {
			since = g.changedBy
		}
		origins[c.id] = since
	}
	g.origins = origins
}

// shortened is a script as a reason has it.
func shortened(script string) string {
	const most = 60
	script = strings.Join(strings.Fields(script), " ")
	if len(script) > most {
		script = strings.ToValidUTF8(script[:most], "") + "..."
	}
	return script
}

// same is what the answer Session is for: with the values of the variables that the script names, or programs get, what else the shell has that
// the script uses, and the files of its programs.
func (q *Question) same(state *command.LiveState) sameScript {
	if q.Input != "" {
		return sameScript{input: q.Input}
	}
	s := sameScript{script: q.Script, dir: q.Dir}
	if state == nil && len(q.Judgement.resolved) == 0 {
		return s
	}
	if state == nil {
		state = &command.LiveState{} // Files of programs count all the same.
	}
	used := map[string]bool{"IFS": true}
	for word := range strings.FieldsFuncSeq(q.Script, notWord) {
		used[word] = true
	}
	sum := sha256.New()
	for _, v := range state.Variables {
		exported := strings.Contains(v.Attributes, "x") && !slices.Contains(movingVariables, v.Name)
		if used[v.Name] || exported {
			fmt.Fprintf(sum, "%q=%q %s\n", v.Name, v.Value, v.Attributes)
		}
	}
	for _, f := range q.Judgement.Findings {
		if f.change != "" {
			fmt.Fprintf(sum, "%q %d\n", f.change, f.From)
		}
	}
	var programs []string
	for l, f := range q.Judgement.resolved {
		programs = append(programs, fmt.Sprintf("%q at %q is %q %q\n", l.name, l.at, f.path, f.state))
	}
	slices.Sort(programs)
	fmt.Fprint(sum, programs)
	s.state = string(sum.Sum(nil))
	return s
}

// movingVariables change with the directory, or with each command.
var movingVariables = []string{"PWD", "OLDPWD", "_", "SHLVL"}

// placed reports whether it was decided for one directory: by a person, by how git is set up there, or by a rule of a person's.
func (p *Pass) placed() bool {
	j := p.question.Judgement
	return p.asked || j.looked || slices.ContainsFunc(j.Findings, func(f Finding) bool { return f.Verdict == Allow && strings.HasPrefix(f.Rule, "own.") })
}

// again reports whether what the shell has, the files that names lead to, and how git is set up still let a script pass.
func (p *Pass) again() bool {
	if p.seen.state == nil && !p.question.Judgement.looked && len(p.question.Judgement.resolved) == 0 {
		return true
	}
	j := p.gate.judge(p.question.Script, p.question.Dir, p.seen.state)
	return j.Verdict >= p.question.Judgement.Verdict && maps.Equal(j.resolved, p.question.Judgement.resolved)
}
