/** Data: the resources, the rows of one, or one row. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { DataTable } from '../parts/data-table'
import { RowPage } from '../parts/row-page'
import { Start } from '../parts/start'
import { Empty, Heading } from '../parts/ui'
import { to } from '../router'
import { collection, resourceOf, shared, slug } from '../shell'
import { useStore } from '../store'
import type { Model } from '../types'
import { count } from '../words'

const LOOKED_AT = 5

export function DataPage({ rest }: { rest: string[] }) {
  const { model } = useStore(shared)
  if (!model) return null
  const [path, id] = rest
  if (!path) return <Overview model={model} />
  const resource = resourceOf(model, path)
  if (!resource) {
    return (
      <Empty title={`There is no resource “${path}”`}>
        <p>
          Perhaps your role may not see it. <a href={to('data')}>All resources</a>
        </p>
      </Empty>
    )
  }
  return id ? <RowPage key={id} resource={resource} id={id} /> : <DataTable key={path} resource={resource} />
}

/** Is there nothing in the first resources? One row of each is read; nothing is counted. */
async function isEmpty(model: Model): Promise<boolean> {
  const readable = model.resources.filter((resource) => resource.verbs.read).slice(0, LOOKED_AT)
  const found = await Promise.all(readable.map((resource) => ask<{ data: unknown[] }>('GET', `${collection(resource)}?first=1&fields=id`)))
  return found.every((page) => page.data.length === 0)
}

function Overview({ model }: { model: Model }) {
  const [empty, setEmpty] = useState(false)
  const [text, setText] = useState('')
  useEffect(() => {
    if (model.resources.length) isEmpty(model).then(setEmpty, () => setEmpty(false))
  }, [model])
  const wanted = model.resources.filter((resource) => resource.many.toLowerCase().includes(text.trim().toLowerCase()))
  return (
    <>
      <Heading title="Data" doc={`${count(model.resources.length, 'resource')} that you may see.`}>
        <input data-filter="" type="search" aria-label="Filter resources" placeholder="Filter…" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Heading>
      {(empty || !model.resources.length) && <Start />}
      <ul class="cards">
        {wanted.map((resource) => (
          <li key={resource.name} class="card">
            <h2>
              <a href={to(`data/${slug(resource)}`)}>{resource.many}</a>
            </h2>
            <p class="soft">{resource.doc || `Rows of ${resource.name}.`}</p>
            <p class="row">
              {Object.entries(resource.verbs)
                .filter(([verb, may]) => may && verb !== 'restore')
                .map(([verb]) => (
                  <span key={verb} class="badge">
                    {verb}
                  </span>
                ))}
            </p>
          </li>
        ))}
      </ul>
    </>
  )
}
