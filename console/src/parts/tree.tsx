/** JSON as a tree that folds. */
import { useState } from 'preact/hooks'

const OPEN_BELOW = 6
const STEP = 100

export function Tree({ value }: { value: unknown }) {
  return (
    <ul class="tree" role="tree" aria-label="Answer">
      <Branch value={value} depth={0} />
    </ul>
  )
}

function Branch({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const many = Array.isArray(value)
  const inner = typeof value === 'object' && value !== null
  const [open, setOpen] = useState(depth < OPEN_BELOW && (!many || (value as unknown[]).length <= STEP))
  const [limit, setLimit] = useState(STEP)
  const key = name === undefined ? null : <span class="tree-key">{name}</span>
  if (!inner) {
    return (
      <li role="treeitem" aria-selected={false} class="tree-leaf">
        {key}
        <Scalar value={value} />
      </li>
    )
  }
  const entries = many ? (value as unknown[]).map((each, n) => [String(n), each] as const) : Object.entries(value as object)
  const summary = many ? `[${entries.length}]` : `{${entries.length}}`
  return (
    <li role="treeitem" aria-expanded={open} aria-selected={false}>
      <button class="tree-fold" onClick={() => setOpen(!open)}>
        <span class="tree-mark" aria-hidden="true">{open ? '▾' : '▸'}</span>
        {key}
        <span class="soft">{summary}</span>
      </button>
      {open && (
        <ul role="group">
          {entries.slice(0, limit).map(([n, each]) => (
            <Branch key={n} name={n} value={each} depth={depth + 1} />
          ))}
          {entries.length > limit && (
            <li role="none">
              <button class="quiet" onClick={() => setLimit(limit + STEP)}>
                {entries.length - limit} more
              </button>
            </li>
          )}
        </ul>
      )}
    </li>
  )
}

function Scalar({ value }: { value: unknown }) {
  const kind = value === null ? 'null' : typeof value
  return <span class={`tree-${kind}`}>{JSON.stringify(value)}</span>
}
