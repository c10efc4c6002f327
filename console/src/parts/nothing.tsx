/** A table without rows: are there none, or does no rule show them? */
import { useEffect, useState } from 'preact/hooks'
import { current } from '../session'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Resource, Why } from '../types'
import { Start } from './start'
import { Empty } from './ui'
import { openPeople } from './view-as'
import { asWhom, explain, WhyLines } from './why'

export function NothingHere({ resource }: { resource: Resource }) {
  const { boot } = useStore(shared)
  const [why, setWhy] = useState<Why | null>(null)
  const isDev = boot?.mode === 'dev'
  useEffect(() => {
    if (isDev) explain({ resource: resource.name, verb: 'read' }, asWhom()).then(setWhy, () => setWhy(null))
  }, [resource.name])
  const hidden = Number(/: (\d+) match/.exec(why?.lines[0] ?? '')?.[1] ?? 0)
  if (hidden && why) return <Hidden resource={resource} count={hidden} why={why} />
  return (
    <Empty title={`There are no ${resource.many} yet`}>
      <p>{resource.verbs.create ? 'Create the first one, or import a CSV file.' : 'You may not create one.'}</p>
      {isDev && !resource.verbs.create && <Eyes />}
      <Start />
    </Empty>
  )
}

function Hidden({ resource, count, why }: { resource: Resource; count: number; why: Why }) {
  const { as } = useStore(current)
  return (
    <Empty title={`${count === 1 ? 'One row is' : `${count} rows are`} hidden from ${as ?? 'you'}`}>
      <p>No rule lets {as ?? 'you'} read any of the {resource.many}. Below is what each rule saw of the first of them.</p>
      <Eyes />
      <div class="why-hidden">
        <WhyLines why={{ ...why, decided: null, rules: [] }} />
      </div>
    </Empty>
  )
}

/** Rules of this model may show rows to users only. */
function Eyes() {
  return (
    <button class="strong" onClick={openPeople}>
      View as a user
    </button>
  )
}
