// A small app of react-admin, as its documentation has it: users to list, create and edit, posts with their authors.
import { diptychDataProvider, Live } from 'diptych-react-admin'
import {
  Admin,
  Create,
  Datagrid,
  Edit,
  List,
  ReferenceField,
  ReferenceManyField,
  Resource,
  SimpleForm,
  TextField,
  TextInput,
} from 'react-admin'
import { createRoot } from 'react-dom/client'

declare const SERVICE: { url: string; token: string }

const dataProvider = diptychDataProvider(SERVICE.url, { token: () => SERVICE.token })

const filters = [<TextInput key="name" source="name.contains" label="Name contains" alwaysOn />]

const UserList = () => (
  <List filters={filters} sort={{ field: 'name', order: 'ASC' }} perPage={10}>
    <Live />
    <Datagrid>
      <TextField source="name" />
      <TextField source="email" />
    </Datagrid>
  </List>
)

const UserCreate = () => (
  <Create redirect="list">
    <SimpleForm>
      <TextInput source="name" />
      <TextInput source="email" />
    </SimpleForm>
  </Create>
)

const UserEdit = () => (
  <Edit mutationMode="pessimistic">
    <SimpleForm>
      <TextInput source="name" />
      <TextInput source="email" />
      <ReferenceManyField reference="posts" target="authorId" perPage={5}>
        <Datagrid bulkActionButtons={false} rowClick={false}>
          <TextField source="title" />
        </Datagrid>
      </ReferenceManyField>
    </SimpleForm>
  </Edit>
)

const PostList = () => (
  <List perPage={5} sort={{ field: 'title', order: 'ASC' }}>
    <Datagrid>
      <TextField source="title" />
      <ReferenceField source="authorId" reference="users">
        <TextField source="name" />
      </ReferenceField>
    </Datagrid>
  </List>
)

createRoot(document.getElementById('root')!).render(
  <Admin dataProvider={dataProvider} disableTelemetry>
    <Resource name="users" list={UserList} create={UserCreate} edit={UserEdit} />
    <Resource name="posts" list={PostList} />
  </Admin>,
)
