// A small app of refine without a library of components: users to list, create and edit.
import { Refine, useDelete, useMany, useTable, type BaseKey, type NotificationProvider } from '@refinedev/core'
import { useForm } from '@refinedev/react-hook-form'
import { diptych } from 'diptych-refine'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

declare const SERVICE: { url: string; token: string }

type User = { id: string; version: number; name: string; email: string }
type Post = { id: string; title: string; authorId: string; author: { name: string } }

const { dataProvider, liveProvider } = diptych(SERVICE.url, { token: async () => SERVICE.token })

const notificationProvider: NotificationProvider = {
  open: ({ message, description }) => {
    document.getElementById('notice')!.textContent = `${message} ${description ?? ''}`
  },
  close: () => {},
}

function Users({ open }: { open: (id: BaseKey | null) => void }) {
  const table = useTable<User>({
    resource: 'users',
    pagination: { pageSize: 10 },
    sorters: { initial: [{ field: 'name', order: 'asc' }] },
  })
  const { mutate: remove } = useDelete<User>()
  const filter = (value: string) => {
    table.setFilters([{ field: 'name', operator: 'contains', value }])
    table.setCurrentPage(1)
  }
  return (
    <>
      <label>
        Name contains
        <input onChange={({ target }) => filter(target.value)} />
      </label>
      <button onClick={() => table.setSorters([{ field: 'name', order: 'desc' }])}>Descending</button>
      <button onClick={() => table.setCurrentPage(2)}>Page 2</button>
      <button onClick={() => open(null)}>Create</button>
      <p>{table.result.total} users</p>
      <ul aria-label="users">
        {table.result.data.map((user) => (
          <li key={user.id}>
            <a href="#" onClick={() => open(user.id)}>{user.name}</a>
            <button onClick={() => remove({ resource: 'users', id: user.id, meta: { version: user.version } })}>Delete</button>
          </li>
        ))}
      </ul>
    </>
  )
}

function Form({ id, done }: { id: BaseKey | null; done: () => void }) {
  const { refineCore, register, handleSubmit, formState } = useForm<User>({
    refineCoreProps: {
      resource: 'users',
      ...(id === null ? { action: 'create' } : { action: 'edit', id }),
      liveMode: 'off', // a form that is read again is filled again
      redirect: false,
      onMutationSuccess: done,
    },
  })
  return (
    <form onSubmit={handleSubmit(refineCore.onFinish)}>
      <label>Name <input {...register('name')} /></label>
      <label>Email <input {...register('email')} /></label>
      <p role="status">{formState.errors.email?.message?.toString()}</p>
      <button>Save</button>
      <button type="button" onClick={done}>Back</button>
    </form>
  )
}

function Posts() {
  const { result: posts } = useTable<Post>({
    resource: 'posts',
    pagination: { pageSize: 5 },
    sorters: { initial: [{ field: 'title', order: 'asc' }] },
    meta: { select: '*,author(name)' },
  })
  const ids = posts.data.map((post) => post.authorId)
  const { result: authors } = useMany<User>({ resource: 'users', ids, queryOptions: { enabled: ids.length > 0 } })
  const name = (id: string) => authors.data?.find((author) => author.id === id)?.name
  return (
    <>
      <ul aria-label="authors">{posts.data.map((post) => <li key={post.id}>{name(post.authorId)}</li>)}</ul>
      <ul aria-label="nested">{posts.data.map((post) => <li key={post.id}>{post.author.name}</li>)}</ul>
    </>
  )
}

function App() {
  const [form, setForm] = useState<{ id: BaseKey | null }>()
  return form ? <Form id={form.id} done={() => setForm(undefined)} /> : <><Users open={(id) => setForm({ id })} /><Posts /></>
}

createRoot(document.getElementById('root')!).render(
  <Refine
    dataProvider={dataProvider}
    liveProvider={liveProvider}
    notificationProvider={notificationProvider}
    resources={[{ name: 'users' }, { name: 'posts' }]}
    options={{ liveMode: 'auto', disableTelemetry: true }}
  >
    <p role="alert" id="notice" />
    <App />
  </Refine>,
)
