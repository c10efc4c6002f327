/** A chart of a few series over time, or of points. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useStore } from '../store'
import { theme } from '../theme'

const HUES = ['--accent', '--right', '--warn', '--bad', '--good', '--left']

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** A token with light-dark() resolved, for a canvas. */
function resolved(token: string): string {
  const probe = document.createElement('span')
  probe.className = 'hidden'
  document.body.append(probe)
  probe.style.color = `var(${token})`
  const found = getComputedStyle(probe).color
  probe.remove()
  return found || colour(token)
}

export interface Line {
  name: string
  values: (number | null)[]
}

export function Chart({ x, lines, unit, points, label }: { x: number[]; lines: Line[]; unit: string; points?: { x: string }; label: string }) {
  const element = useRef<HTMLDivElement>(null)
  const now = useStore(theme)
  useEffect(() => {
    const parent = element.current
    if (!parent || !x.length) return
    const ink = resolved('--soft')
    const grid = resolved('--line')
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: '11px system-ui' }
    const plot = new uPlot(
      {
        width: Math.max(200, parent.clientWidth),
        height: 190,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: !points } },
        axes: [{ ...axis, label: points?.x ?? '', labelFont: '11px system-ui', labelSize: points ? 16 : 0 }, { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => `${tick}${unit}`) }],
        series: [
          {},
          ...lines.map((line, n): uPlot.Series => {
            const stroke = resolved(HUES[n % HUES.length] ?? '--accent')
            return points ? { label: line.name, stroke, paths: () => null, points: { show: true, size: 5, fill: stroke } } : { label: line.name, stroke, width: 1.5, spanGaps: true, points: { show: false } }
          }),
        ],
      },
      [x, ...lines.map((line) => line.values)] as uPlot.AlignedData,
      parent,
    )
    const watcher = new ResizeObserver(() => plot.setSize({ width: Math.max(200, parent.clientWidth), height: 190 }))
    watcher.observe(parent)
    return () => {
      watcher.disconnect()
      plot.destroy()
    }
  }, [x, lines, now])
  return (
    <figure class="panel">
      <figcaption class="panel-head">
        <h2>{label}</h2>
        {lines.length > 1 &&
          lines.map((line, n) => (
            <span key={line.name} class="row soft">
              <svg class="legend-swatch" viewBox="0 0 10 10" aria-hidden="true">
                <rect width="10" height="10" rx="2" fill={`var(${HUES[n % HUES.length]})`} />
              </svg>
              {line.name}
            </span>
          ))}
      </figcaption>
      <div class="panel-body">
        <div class="chart" ref={element} role="img" aria-label={label} />
      </div>
    </figure>
  )
}
