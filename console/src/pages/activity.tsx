/** Activity: the last requests of both styles, the slowest statements, price against time, rates and latencies. */
import { useEffect, useState } from 'preact/hooks'
import { ask, Failure } from '../api'
import { ActivityCharts } from '../parts/activity-charts'
import { RequestTable, SlowestStatements } from '../parts/request-table'
import { Empty, Heading, Loading, Problem, Tabs } from '../parts/ui'
import { to } from '../router'
import type { Recent, Series } from '../types'

const EVERY = 3000
const STYLES = { '': 'Both styles', graphql: 'GraphQL', rest: 'REST' }

interface Activity {
  requests: Recent[] | null
  series: Series[]
  error: unknown
}

export function ActivityPage() {
  const [paused, setPaused] = useState(false)
  const found = useActivity(paused)
  const status = found.error instanceof Failure ? found.error.status : 0
  return (
    <>
      <Heading title="Activity" doc="The last 500 requests of this process, of both styles, newest first. Their values are not kept.">
        <button aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? 'Resume' : 'Pause'}
        </button>
      </Heading>
      {status === 401 || status === 403 ? (
        <Empty title="Only admins see what others ask">
          <p>Sign in with the role admin, or look at your own requests on the page Request.</p>
        </Empty>
      ) : found.error ? (
        <Problem error={found.error} />
      ) : !found.requests ? (
        <Loading />
      ) : found.requests.length === 0 ? (
        <Empty title="No request yet">
          <p>
            <a href={to('request')}>Send one</a>, and it is listed here.
          </p>
        </Empty>
      ) : (
        <Shown requests={found.requests} series={found.series} />
      )}
    </>
  )
}

/** What the service has answered, asked again every few seconds. */
function useActivity(paused: boolean): Activity {
  const [found, setFound] = useState<Activity>({ requests: null, series: [], error: null })
  useEffect(() => {
    if (paused) return
    let next = 0
    let stopped = false
    let later = 0
    const look = async () => {
      try {
        const fresh = await ask<{ next: number; requests: Recent[] }>('GET', `/console/api/recent?after=${next}`)
        const metrics = await ask<{ series: Series[] }>('GET', '/console/api/metrics').catch(() => null)
        if (stopped) return
        next = fresh.next
        setFound((now) => ({ requests: merged(fresh.requests, now.requests ?? []), series: metrics?.series ?? now.series, error: null }))
      } catch (error) {
        if (!stopped) setFound((now) => ({ ...now, error }))
      }
      if (!stopped) later = window.setTimeout(look, EVERY)
    }
    void look()
    return () => {
      stopped = true
      clearTimeout(later)
    }
  }, [paused])
  return found
}

function merged(fresh: Recent[], known: Recent[]): Recent[] {
  const all = new Map([...known, ...fresh].map((request) => [request.n, request]))
  return [...all.values()].sort((a, b) => b.n - a.n).slice(0, 500)
}

function Shown({ requests, series }: { requests: Recent[]; series: Series[] }) {
  const [tab, setTab] = useState('recent')
  const [style, setStyle] = useState('')
  const chosen = requests.filter((each) => !style || each.style === style)
  const tools = (
    <select aria-label="Style of requests" value={style} onChange={(event) => setStyle(event.currentTarget.value)}>
      {Object.entries(STYLES).map(([id, title]) => (
        <option key={id} value={id}>
          {title}
        </option>
      ))}
    </select>
  )
  const tabs = [
    { id: 'recent', title: 'Recent' },
    { id: 'slow', title: 'Slowest' },
    { id: 'refused', title: 'Refused' },
    { id: 'statements', title: 'By statement' },
  ]
  return (
    <>
      <ActivityCharts requests={chosen} series={series.filter((each) => each.name.startsWith(style))} />
      <section class="panel">
        <Tabs label="Requests" at={tab} onChange={setTab} tabs={tabs} tools={tools}>
          {tab === 'recent' && <RequestTable requests={chosen.slice(0, 100)} />}
          {tab === 'slow' && <RequestTable requests={chosen.filter((each) => !each.stream).sort((a, b) => b.ms - a.ms).slice(0, 30)} />}
          {tab === 'refused' && <RequestTable requests={chosen.filter((each) => each.status >= 400 || each.code).slice(0, 100)} />}
          {tab === 'statements' && <SlowestStatements requests={chosen} />}
        </Tabs>
      </section>
    </>
  )
}
