/** What the service says of a request before it runs: rules, statement, plan; and the request as curl and code. */
import { useEffect, useState } from 'preact/hooks'
import { ask, Failure } from '../api'
import type { Plans, Twin } from '../types'
import { curlGraphql, curlRest, javascript, python, type Sent } from './snippets'
import { RuleList } from './why'
import { Code, Loading, Problem, Tabs } from './ui'

const TABS = [
  { id: 'rules', title: 'Rules' },
  { id: 'statement', title: 'Statement' },
  { id: 'plan', title: 'Plan' },
  { id: 'curl', title: 'curl' },
  { id: 'code', title: 'Code' },
]

export function Explanation({ twin, body, sent, as }: { twin: Twin | null; body: unknown; sent: Sent; as: string | null }) {
  const [tab, setTab] = useState('rules')
  return (
    <section class="panel" aria-label="Explanation">
      <Tabs label="Explanation" tabs={TABS} at={tab} onChange={setTab}>
        {tab === 'rules' && <Rules twin={twin} as={as} />}
        {tab === 'statement' && <Statements twin={twin} />}
        {tab === 'plan' && <Plan body={body} />}
        {tab === 'curl' && (
          <>
            {sent.graphql && <h2>GraphQL</h2>}
            {sent.graphql && <Code label="curl, GraphQL" text={curlGraphql(sent)} />}
            {sent.rest && <h2>REST</h2>}
            {sent.rest && <Code label="curl, REST" text={curlRest(sent)} />}
          </>
        )}
        {tab === 'code' && (
          <>
            <h2>JavaScript</h2>
            <Code label="JavaScript" text={javascript(sent)} />
            <h2>Python</h2>
            <Code label="Python" text={python(sent)} />
          </>
        )}
      </Tabs>
    </section>
  )
}

function Rules({ twin, as }: { twin: Twin | null; as: string | null }) {
  if (!twin?.rules?.length) return <p class="soft">{twin?.refused ? 'Refused before any rule was asked.' : 'The rules that decide appear here as you write.'}</p>
  return (
    <>
      {as && <p class="badge warn">as {as}</p>}
      <RuleList rules={twin.rules} />
    </>
  )
}

function Statements({ twin }: { twin: Twin | null }) {
  if (!twin?.sql?.length) return <p class="soft">No statement: {twin?.refused ? 'the request is refused before the database is asked.' : 'nothing is written yet.'}</p>
  return (
    <>
      {twin.sql.map((each, n) => (
        <div key={n}>
          <Code label="SQL" text={each.statement} />
          {each.parameters && each.parameters.length > 0 && <p class="soft mono">{each.parameters.join(' · ')}</p>}
        </div>
      ))}
    </>
  )
}

function Plan({ body }: { body: unknown }) {
  const [plans, setPlans] = useState<Plans | null>(null)
  const [error, setError] = useState<unknown>(null)
  const key = JSON.stringify(body)
  useEffect(() => {
    setError(null)
    setPlans(null)
    if (!body) return
    const stop = new AbortController()
    const later = setTimeout(() => {
      ask<Plans>('POST', '/console/api/plan', { body, signal: stop.signal }).then(setPlans, (reason) => !stop.signal.aborted && setError(reason))
    }, 300)
    return () => {
      clearTimeout(later)
      stop.abort()
    }
  }, [key])
  if (!body) return <p class="soft">Write a request first.</p>
  if (error instanceof Failure && (error.status === 401 || error.status === 403)) return <p class="soft">The plan of the database is for admins.</p>
  if (error) return <Problem error={error} />
  if (!plans) return <Loading what="Asking the database…" />
  if (!plans.plans.length) return <p class="soft">There is no statement to plan.</p>
  return (
    <>
      <p class="soft">EXPLAIN of the database. The statement is not run.</p>
      {plans.plans.map((plan, n) => (
        <Code key={n} label="Plan" text={plan.lines.join('\n')} />
      ))}
    </>
  )
}
