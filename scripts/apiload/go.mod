module apiload

go 1.26
