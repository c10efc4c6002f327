/** The charts of the page Activity: price against time, and the series of the service over time. */
import { useMemo } from 'preact/hooks'
import type { Recent, Series } from '../types'
import { Chart, type Line } from './chart'

const STYLES = [
  ['graphql', 'GraphQL'],
  ['rest', 'REST'],
] as const
const TITLES: Record<string, string> = { rate: 'Requests per second', latency: 'Milliseconds' }

export function ActivityCharts({ requests, series }: { requests: Recent[]; series: Series[] }) {
  return (
    <div class="charts">
      <PriceAgainstTime requests={requests} />
      {byKind(series).map(([kind, group]) => (
        <SeriesChart key={kind} kind={kind} group={group} />
      ))}
    </div>
  )
}

/** A point for each request that ran, in the colour of its style; one that was refused took no time for its price. */
function PriceAgainstTime({ requests }: { requests: Recent[] }) {
  const { x, lines } = useMemo(() => {
    const priced = requests.filter((each) => each.price != null && !each.stream && !each.code && each.status < 400).sort((a, b) => (a.price ?? 0) - (b.price ?? 0))
    const of = (style: string) => priced.map((each) => (each.style === style ? each.ms : null))
    const used = STYLES.filter(([style]) => priced.some((each) => each.style === style))
    return { x: priced.map((each) => each.price ?? 0), lines: used.map(([style, name]): Line => ({ name, values: of(style) })) }
  }, [requests])
  return x.length > 1 ? <Chart label="Price against time" x={x} lines={lines} unit=" ms" points={{ x: 'price' }} /> : null
}

/** Series of one kind share a chart. */
function byKind(series: Series[]): [string, Series[]][] {
  const groups = new Map<string, Series[]>()
  for (const each of series.filter((one) => one.points.length > 1)) groups.set(each.kind, [...(groups.get(each.kind) ?? []), each])
  return [...groups]
}

/** `graphql mean milliseconds` → `GraphQL mean`. */
const named = (name: string) => name.replace(/^graphql/, 'GraphQL').replace(/^rest/, 'REST').replace(/ (milliseconds|requests per second)$/, '').replace(/ per second$/, '')

function SeriesChart({ kind, group }: { kind: string; group: Series[] }) {
  const { x, lines } = useMemo(() => {
    const moments = [...new Set(group.flatMap((each) => each.points.map(([at]) => at)))].sort((a, b) => a - b)
    const lines = group.map((each): Line => {
      const values = new Map(each.points)
      return { name: named(each.name), values: moments.map((at) => values.get(at) ?? (kind === 'rate' ? 0 : null)) }
    })
    return { x: moments, lines }
  }, [group, kind])
  return <Chart label={TITLES[kind] ?? kind} x={x} lines={lines} unit={kind === 'latency' ? ' ms' : ''} />
}
