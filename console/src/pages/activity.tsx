/** Activity: the last requests, the slowest statements, price against time, rates and latencies. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ask, Failure } from '../api'
import { Chart, type Line } from '../parts/chart'
import { share } from '../parts/drafts'
import { Empty, Heading, Loading, Problem, Tabs } from '../parts/ui'
import { to } from '../router'
import type { Recent, Series } from '../types'
import { bytes, count, milliseconds, short, timeOfDay } from '../words'

const EVERY = 3000

export function ActivityPage() {
  const [requests, setRequests] = useState<Recent[] | null>(null)
  const [series, setSeries] = useState<Series[]>([])
  const [error, setError] = useState<unknown>(null)
  const [paused, setPaused] = useState(false)
  const [tab, setTab] = useState('recent')
  useEffect(() => {
    if (paused) return
    let next = 0
    let stopped = false
    let later = 0
    const look = async () => {
      try {
        const found = await ask<{ next: number; requests: Recent[] }>('GET', `/console/api/recent?after=${next}`)
        if (stopped) return
        next = found.next
        setRequests((now) => merged(found.requests, now ?? []))
        setError(null)
        const metrics = await ask<{ series: Series[] }>('GET', '/console/api/metrics').catch(() => null)
        if (metrics && !stopped) setSeries(metrics.series)
      } catch (reason) {
        if (!stopped) setError(reason)
      }
      if (!stopped) later = window.setTimeout(look, EVERY)
    }
    void look()
    return () => {
      stopped = true
      clearTimeout(later)
    }
  }, [paused])
  const status = error instanceof Failure ? error.status : 0
  return (
    <>
      <Heading title="Activity" doc="The last 500 requests of this process, newest first.">
        <button aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? 'Resume' : 'Pause'}
        </button>
      </Heading>
      {status === 401 || status === 403 ? (
        <Empty title="Only admins see what others ask">
          <p>Sign in with the role admin, or look at your own requests on the page Request.</p>
        </Empty>
      ) : error ? (
        <Problem error={error} />
      ) : !requests ? (
        <Loading />
      ) : requests.length === 0 ? (
        <Empty title="No request yet">
          <p>
            <a href={to('request')}>Send one</a>, and it is listed here.
          </p>
        </Empty>
      ) : (
        <>
          <Charts requests={requests} series={series} />
          <section class="panel">
            <Tabs
              label="Requests"
              at={tab}
              onChange={setTab}
              tabs={[
                { id: 'recent', title: 'Recent' },
                { id: 'slow', title: 'Slowest' },
                { id: 'statements', title: 'By statement' },
              ]}
            >
              {tab === 'recent' && <Table requests={requests.slice(0, 100)} />}
              {tab === 'slow' && <Table requests={[...requests].sort((a, b) => b.ms - a.ms).slice(0, 30)} />}
              {tab === 'statements' && <Statements requests={requests} />}
            </Tabs>
          </section>
        </>
      )}
    </>
  )
}

function merged(fresh: Recent[], known: Recent[]): Recent[] {
  const all = new Map([...known, ...fresh].map((request) => [request.n, request]))
  return [...all.values()].sort((a, b) => b.n - a.n).slice(0, 500)
}

function Charts({ requests, series }: { requests: Recent[]; series: Series[] }) {
  const priced = useMemo(() => requests.filter((each) => each.price != null).sort((a, b) => (a.price ?? 0) - (b.price ?? 0)), [requests])
  const x = useMemo(() => priced.map((each) => each.price ?? 0), [priced])
  const lines = useMemo<Line[]>(() => [{ name: 'ms', values: priced.map((each) => each.ms) }], [priced])
  return (
    <div class="charts">
      {priced.length > 1 && <Chart label="Price against time" x={x} lines={lines} unit=" ms" points={{ x: 'price' }} />}
      {groupsOf(series).map(([name, group]) => (
        <SeriesChart key={name} name={name} group={group} />
      ))}
    </div>
  )
}

/** Series of one kind share a chart. */
function groupsOf(series: Series[]): [string, Series[]][] {
  const groups = new Map<string, Series[]>()
  for (const each of series.filter((one) => one.points.length > 1)) groups.set(each.kind, [...(groups.get(each.kind) ?? []), each])
  return [...groups].slice(0, 5)
}

function SeriesChart({ name, group }: { name: string; group: Series[] }) {
  const { x, lines } = useMemo(() => {
    const moments = [...new Set(group.flatMap((each) => each.points.map(([at]) => at)))].sort((a, b) => a - b)
    return {
      x: moments,
      lines: group.map((each) => {
        const values = new Map(each.points)
        return { name: each.name, values: moments.map((at) => values.get(at) ?? null) }
      }),
    }
  }, [group])
  return <Chart label={group.length === 1 ? (group[0]?.name ?? name) : name} x={x} lines={lines} unit="" />
}

/** The request on the page Request, where its rules, price and statement are. */
function link(request: Recent): string {
  const rest = request.style === 'rest' || (request.path !== '/graphql' && !request.path.endsWith('/graphql'))
  const empty = { id: '', variables: '', operation: '', query: '', rest: '' }
  const draft = rest ? { ...empty, side: 'rest' as const, rest: `${request.method} ${request.path}` } : null
  return draft ? `${to('request')}#r=${share(draft)}` : to('request')
}

function Table({ requests }: { requests: Recent[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Requests">
      <table class="grid">
        <thead>
          <tr>
            {['at', 'request', 'status', 'time', 'price', 'rows', 'size', 'viewer'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {requests.map((each) => (
            <tr key={each.n}>
              <td>{timeOfDay(each.at)}</td>
              <td>
                <a href={link(each)} target={each.style === 'rest' ? '_blank' : undefined} rel="noreferrer">
                  {each.style === 'graphql' ? `GraphQL ${each.name ?? ''}` : `${each.method} ${each.path}`}
                </a>
              </td>
              <td>
                <span class={each.status >= 400 ? 'badge bad' : 'badge good'}>{each.status}</span>
              </td>
              <td class="number">{milliseconds(each.ms)}</td>
              <td class="number">{each.price ?? ''}</td>
              <td class="number">{each.rows ?? ''}</td>
              <td class="number">{each.bytes == null ? '' : bytes(each.bytes)}</td>
              <td title={each.viewer ?? undefined}>{short(each.viewer ?? '')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Statements({ requests }: { requests: Recent[] }) {
  const groups = new Map<string, Recent[]>()
  for (const each of requests) if (each.statement) groups.set(each.statement, [...(groups.get(each.statement) ?? []), each])
  const worst = [...groups].map(([statement, all]) => ({ statement, number: all.length, total: all.reduce((sum, each) => sum + each.ms, 0), most: Math.max(...all.map((each) => each.ms)) })).sort((a, b) => b.total - a.total).slice(0, 20)
  if (!worst.length) return <p class="soft">No request has run a statement.</p>
  return (
    <>
      {worst.map((each) => (
        <div class="rule" key={each.statement}>
          <strong>
            {milliseconds(each.total)} in {count(each.number, 'request')}, {milliseconds(each.most)} at most
          </strong>
          <pre>{each.statement}</pre>
        </div>
      ))}
    </>
  )
}
