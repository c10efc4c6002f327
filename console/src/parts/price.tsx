/** Depth and price of what is written, or why it is refused. */
import type { Twin } from '../types'

export function Price({ twin, broken, as }: { twin: Twin | null; broken: string | null; as: string | null }) {
  if (broken) return <p class="price soft" role="status">{broken}</p>
  if (twin?.refused) {
    return (
      <p class="price refused" role="status">
        {twin.refused.code}: {twin.refused.message}
      </p>
    )
  }
  if (!twin?.price) return <p class="price" role="status">Depth and price appear as you write.</p>
  const { depth, maxDepth, cost, maxCost, lines } = twin.price
  const formula = lines.map((line) => /^Price.* = (.+)$/.exec(line)?.[1]).find(Boolean)
  return (
    <p class="price" role="status" title={lines.join('\n')}>
      Depth <b>{depth}</b> of {maxDepth} · Price <b>{cost}</b> of {maxCost}
      {formula ? ` = ${formula}` : ''}
      {as ? ` · as ${as}` : ''}
    </p>
  )
}
